package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"github.com/lmcaddy/lmcaddy/supervisor"
)

func runPS(t *testing.T, arguments ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "ps"}
	psCommand(cmd)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(arguments)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// adminSocket serves the route as Caddy's admin endpoint does, on a socket in a folder of its own.
func adminSocket(t *testing.T, overview func() (supervisor.Overview, error)) (address string) {
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
	mux.HandleFunc(psPath, func(w http.ResponseWriter, r *http.Request) {
		var failed caddy.APIError
		if err := servePS(w, r, overview); errors.As(err, &failed) {
			w.WriteHeader(failed.HTTPStatus)
			_, _ = fmt.Fprintf(w, `{"error":%q}`, failed.Err)
		}
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

func TestPS_AsksTheRunningServer(t *testing.T) {
	t.Parallel()
	address := adminSocket(t, func() (supervisor.Overview, error) { return everything(), nil })
	out, err := runPS(t, "--address", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSTANCE", "a/idle:2", "loading 45%", "12 requests in line for b/busy."} {
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
		"no socket":       {"unix//nowhere/admin.sock|0600", []string{"no lmcaddy seems to run on the home folder /some/home", "/nowhere/admin.sock", "lmcaddy serve", "LMCADDY_HOME", "--address"}},
		"nobody listens":  {nobody, []string{"no lmcaddy seems to run", nobody}},
		"nonsense":        {"127.0.0.1:1-2", []string{"127.0.0.1:1-2 is not the address of an admin endpoint"}},
		"still starting":  {adminSocket(t, func() (supervisor.Overview, error) { return supervisor.Overview{}, errNotServing }), []string{"503", errNotServing.Error()}},
		"no model server": {adminSocket(t, activeOverview), []string{"503", "no model server"}},
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

func TestAdmin_IsReadOnly(t *testing.T) {
	t.Parallel()
	address := adminSocket(t, func() (supervisor.Overview, error) { return everything(), nil })
	socket := strings.TrimSuffix(strings.TrimPrefix(address, "unix/"), "|0600")
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://localhost"+psPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: status %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}
