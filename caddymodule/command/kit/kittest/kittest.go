// Package kittest helps to test commands.
package kittest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard" // which configurations in tests name
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Narrow is a stream to a terminal with this number of columns.
type Narrow struct {
	bytes.Buffer
	Width int
}

// Columns returns their number.
func (n *Narrow) Columns() int { return n.Width }

// TalkTo runs a command with a server that answers as a table of "METHOD path" says: JSON, a stream of events, or
// after an exclamation mark an error.
func TalkTo(t *testing.T, command func(*cobra.Command), answers map[string]string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"type":"model_not_found","message":"Not ` + r.URL.Path + `."}}`
		case strings.HasPrefix(answer, "!"):
			w.WriteHeader(http.StatusBadRequest)
			answer = answer[1:]
		case strings.HasPrefix(answer, "data:"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer) //nolint:gosec // a test says what it is
	}))
	t.Cleanup(server.Close)
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "x", SilenceUsage: true}
	command(cmd)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append(arguments, "--host", server.URL))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// WantTalk checks what a command has printed, or the error that it ended with.
func WantTalk(t *testing.T, want, wantError, got string, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" && wantError == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
		t.Errorf("error %v, want %q", err, wantError)
	}
}
