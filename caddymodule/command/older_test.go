package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// TestOlderServer has commands ask a server of a version that lacks what they ask for, and takes unknown fields for none.
func TestOlderServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		define func(*cobra.Command)
		line   []string
		want   string
	}{
		"ps":                {definePS, nil, "older than this command"},
		"show":              {defineShow, []string{"p/m"}, "older than this command"},
		"an estimate":       {defineLoad, []string{"p/m", "--estimate-only"}, "older than this command"},
		"a time to live":    {defineLoad, []string{"p/m", "--ttl", "5m"}, "older than this command"},
		"a download's plan": {defineGet, []string{"p/m"}, "older than this command"},
		"a path":            {defineShow, []string{"../x"}, "has a path in it"},
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

func TestExportTo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ünï cödé.md")
	c := &resource.Conversation{Title: "first", Updated: new(resource.Time)}
	if err := exportTo(path, c, formatMarkdown, false); err != nil {
		t.Fatal(err)
	}
	c.Title = "second"
	if err := exportTo(path, c, formatMarkdown, false); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# first\n") {
		t.Errorf("the file is %q, error %v", text, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := exportTo(path, c, formatMarkdown, true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# second\n") {
		t.Errorf("the file is %q, error %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others can read it: %v, error %v", info.Mode(), err)
	}
}
