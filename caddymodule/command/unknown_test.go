package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/server"
)

// TestServer_WithoutTheEndpoint has commands ask a server that lacks what they ask for.
func TestServer_WithoutTheEndpoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		define func(*cobra.Command)
		line   []string
		want   string
	}{
		"ps":     {server.DefinePS, nil, "older than this command"},
		"show":   {models.DefineShow, []string{"p/m"}, "older than this command"},
		"a path": {models.DefineShow, []string{"../x"}, "has a path in it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					changed.Store(true)
					return
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"error":{"type":"invalid_request","message":"Unexpected endpoint or method. (GET ` + r.URL.Path + `)"}}`))
			}))
			t.Cleanup(server.Close)
			cmd := &cobra.Command{Use: "x", SilenceUsage: true, SilenceErrors: true}
			tt.define(cmd)
			cmd.SetArgs(append(tt.line, "--host", server.URL))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if changed.Load() {
				t.Error("the server was told to do something")
			}
		})
	}
}
