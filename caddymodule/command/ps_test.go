package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// run runs a command of ours, by its definition.
func run(t *testing.T, define func(*cobra.Command), arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "lmcaddy", SilenceErrors: true, SilenceUsage: true}
	define(cmd)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(arguments)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// answering returns the URL of a server that gives the same answer to each request for a path.
func answering(t *testing.T, path, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// goldenOverview is an answer of the API.
func goldenOverview(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../testdata/ps_" + name + ".json.golden")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// narrow is a stream to a terminal with this number of columns.
type narrow struct {
	bytes.Buffer
	columns int
}

func (n *narrow) Columns() int { return n.columns }

func TestOverview_Table(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"everything", "nothing"} {
		var o resource.Overview
		if err := json.Unmarshal([]byte(goldenOverview(t, name)), &o); err != nil {
			t.Fatal(err)
		}
		var out, wide bytes.Buffer
		if err := writeOverview(&out, &o, false); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, "ps_"+name+".golden", out.String())
		if err := writeOverview(&wide, &o, true); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, "ps_"+name+"_wide.golden", wide.String())
	}
}

// What isn't wholly on a GPU is said, and what other programs hold of it.
func TestOverview_GPU(t *testing.T) {
	t.Parallel()
	var o resource.Overview
	if err := json.Unmarshal([]byte(goldenOverview(t, "everything")), &o); err != nil {
		t.Fatal(err)
	}
	o.Instances[0].Placement = "CUDA0"
	o.Instances[1].Placement, o.Instances[1].Split = "27 of 33 layers on CUDA0 (82 % of the weights)", true
	o.Faults = []string{"The engine llama.cpp can't use CUDA1 in its sandbox."}
	o.Devices[1].Budget, o.Devices[1].Held, o.Devices[1].Claimed = 20<<30, 2<<30, 18<<30
	var wide bytes.Buffer
	if err := writeOverview(&wide, &o, true); err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "ps_gpu_wide.golden", wide.String())
}

func TestOverview_FitsATerminal(t *testing.T) {
	t.Parallel()
	var o resource.Overview
	if err := json.Unmarshal([]byte(goldenOverview(t, "everything")), &o); err != nil {
		t.Fatal(err)
	}
	o.Instances[0].ID = "somebody/a-model-with-a-name-that-is-much-longer-than-half-of-the-terminal-is-wide"
	out := &narrow{columns: 80}
	if err := writeOverview(out, &o, false); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(out.String(), "\n\n")
	for line := range strings.Lines(table) {
		if w := terminal.Width(strings.TrimRight(line, "\n")); w > 80 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	if !strings.Contains(table, "…") || !strings.Contains(table, "in 59m50s") {
		t.Errorf("only the longest cell is cut:\n%s", table)
	}
}

func TestPS(t *testing.T) {
	t.Parallel()
	host := answering(t, "/api/v1/ps", goldenOverview(t, "everything"))
	out, notes, err := run(t, definePS, "--host", host, "--address", "unix//gone")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSTANCE", "a/idle:2", "loading 45%", "12 requests waiting for b/busy."} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	if !strings.Contains(notes, "--address is no longer needed") {
		t.Errorf("notes: %s", notes)
	}
	out, _, err = run(t, definePS, "--json", "--host", host)
	if ids := gjson.Get(out, "instances.#.id").Raw; err != nil || ids != `["a/idle","a/idle:2","b/busy","c/loading","d/starting","e/leaving"]` {
		t.Errorf("%s, error %v", ids, err)
	}
}
