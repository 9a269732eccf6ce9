package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://huggingface.co/a/b":     true,
		"http://127.0.0.1:80/a":          true,
		"http://127.9.9.9/a":             true,
		"http://[::1]:8080/a":            true,
		"http://localhost/a":             true,
		"http://[::ffff:127.0.0.1]/a":    true,
		"http://huggingface.co/a":        false,
		"http://localhost.example.com/a": false,
		"http://10.0.0.1/a":              false,
		"ftp://127.0.0.1/a":              false,
		"file:///etc/passwd":             false,
		"https://user:word@host/a":       false,
		"https:///a":                     false,
		"/a":                             false,
	} {
		if err := Check(parsed(t, address)); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://h/a", "https://h/b", true},
		{"https://h/a", "https://h:443/b", true},
		{"https://h/a", "https://h:444/b", false},
		{"https://h/a", "https://cdn.h/b", false},
		{"https://cdn.h/a", "https://h/b", false},
		{"http://127.0.0.1:1/a", "http://127.0.0.1:2/a", false},
		{"https://h/a", "http://h/a", false},
	} {
		if got := SameOrigin(parsed(t, c.a), parsed(t, c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// TestCheckRedirect_StaysSafe follows redirects of a server on this machine.
func TestCheckRedirect_StaysSafe(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for path, to := range map[string]string{"/out": "http://example.com/x", "/loop": "/loop", "/near": "/end"} {
		mux.Handle(path, http.RedirectHandler(to, http.StatusFound))
	}
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	defer server.Close()
	client := &http.Client{Transport: NewTransport(), CheckRedirect: CheckRedirect}
	defer client.CloseIdleConnections()

	for path, want := range map[string]string{"/out": "only https is followed", "/loop": "too many redirects", "/near": ""} {
		response, err := client.Get(server.URL + path)
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	from, _ := http.NewRequest(http.MethodGet, "https://hub/x", nil)
	to, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1/x", nil)
	var insecure *InsecureError
	if err := CheckRedirect(to, []*http.Request{from}); !errors.As(err, &insecure) {
		t.Errorf("from https to http on this machine: %v", err)
	}
	mirror, _ := http.NewRequest(http.MethodGet, "http://mirror.lan/x", nil)
	other, _ := http.NewRequest(http.MethodGet, "http://files.lan/x", nil)
	if err := CheckRedirect(other, []*http.Request{mirror}); err != nil {
		t.Errorf("from http on another machine, which the caller has allowed: %v", err)
	}
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, w := WithWatchdog(t.Context(), time.Minute)
		defer w.Stop()
		for range 3 {
			time.Sleep(59 * time.Second)
			w.Alive()
		}
		if ctx.Err() != nil {
			t.Fatal("it ended while it was alive")
		}
		time.Sleep(61 * time.Second)
		if !errors.Is(context.Cause(ctx), ErrStalled) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
	})
}
