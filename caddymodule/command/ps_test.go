package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

func runPS(t *testing.T, arguments ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "ps"}
	definePS(cmd)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(arguments)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// adminSocket answers as Caddy's admin endpoint does, on a socket in a folder of its own.
func adminSocket(t *testing.T, status int, answer string) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lm") // short: the path of a socket has about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+caddymodule.PSPath, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	server := &http.Server{Handler: mux}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return "unix/" + socket + "|0600"
}

// goldenReport is an answer that the admin endpoint is tested with.
func goldenReport(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../testdata/ps_" + name + ".json.golden")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReport_Table(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"everything", "nothing"} {
		var r caddymodule.Report
		if err := json.Unmarshal([]byte(goldenReport(t, name)), &r); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := writeReport(&out, &r); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, "ps_"+name+".golden", out.String())
	}
}

func TestPS_AsksTheRunningServer(t *testing.T) {
	t.Parallel()
	address := adminSocket(t, http.StatusOK, goldenReport(t, "everything"))
	out, err := runPS(t, "--address", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSTANCE", "a/idle:2", "loading 45%", "12 requests waiting for b/busy."} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	out, err = runPS(t, "--json", "--address", address)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, id := range gjson.Get(out, "instances.#.id").Array() {
		ids = append(ids, id.Str)
	}
	if diff := cmp.Diff([]string{"a/idle", "a/idle:2", "b/busy", "c/loading", "d/starting", "e/leaving"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestPS_Errors(t *testing.T) {
	t.Setenv("LMCADDY_HOME", "/some/home")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for name, tt := range map[string]struct {
		address string
		want    []string
	}{
		"no socket":      {"unix//nowhere/admin.sock|0600", []string{"no lmcaddy seems to be running on the home folder /some/home", "/nowhere/admin.sock", "lmcaddy serve", "LMCADDY_HOME", "--address"}},
		"nobody listens": {nobody, []string{"no lmcaddy seems to be running", nobody}},
		"nonsense":       {"127.0.0.1:1-2", []string{"127.0.0.1:1-2 is not the address of an admin endpoint"}},
		"still starting": {adminSocket(t, http.StatusServiceUnavailable, `{"error":"it is still starting"}`), []string{"503", "it is still starting"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runPS(t, "--address", tt.address)
			if err == nil || out != "" && !strings.HasPrefix(out, "Error: ") {
				t.Fatalf("error %v, output %q", err, out)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// TestPS_AsksWhereTheEnvironmentSays has a server on the home, and another at the admin endpoint that the user names.
func TestPS_AsksWhereTheEnvironmentSays(t *testing.T) {
	dir, err := os.MkdirTemp("", "home") // a test's own folder may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("LMCADDY_HOME", dir)
	if err := os.Mkdir(home.Dir(dir).Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", home.Dir(dir).Socket())
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{ReadHeaderTimeout: psTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"home":true}`)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	before := caddy.DefaultAdminListen
	t.Cleanup(func() { caddy.DefaultAdminListen = before })
	caddy.DefaultAdminListen = adminSocket(t, http.StatusOK, `{"home":false}`) // as Caddy does with CADDY_ADMIN
	for variable, want := range map[string]bool{"": true, caddy.DefaultAdminListen: false} {
		t.Setenv("CADDY_ADMIN", variable)
		if out, err := runPS(t, "--json"); err != nil || gjson.Get(out, "home").Bool() != want {
			t.Errorf("CADDY_ADMIN=%s: %s, error %v", variable, out, err)
		}
	}
}
