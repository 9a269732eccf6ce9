package server

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// goldenOverview is an answer of the API.
func goldenOverview(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/ps_" + name + ".json.golden")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

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
		testkit.Golden(t, "testdata/ps_"+name+".golden", out.Bytes())
		if err := writeOverview(&wide, &o, true); err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, "testdata/ps_"+name+"_wide.golden", wide.Bytes())
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
	testkit.Golden(t, "testdata/ps_gpu_wide.golden", wide.Bytes())
}

func TestOverview_FitsATerminal(t *testing.T) {
	t.Parallel()
	var o resource.Overview
	if err := json.Unmarshal([]byte(goldenOverview(t, "everything")), &o); err != nil {
		t.Fatal(err)
	}
	o.Instances[0].ID = "somebody/a-model-with-a-name-that-is-much-longer-than-half-of-the-terminal-is-wide"
	out := &kittest.Narrow{Width: 80}
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
	answers := map[string]string{"GET /api/v1/ps": goldenOverview(t, "everything")}
	out, _, err := kittest.TalkTo(t, DefinePS, answers)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSTANCE", "a/idle:2", "loading 45%", "12 requests waiting for b/busy."} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	out, _, err = kittest.TalkTo(t, DefinePS, answers, "--json")
	if ids := gjson.Get(out, "instances.#.id").Raw; err != nil || ids != `["a/idle","a/idle:2","b/busy","c/loading","d/starting","e/leaving"]` {
		t.Errorf("%s, error %v", ids, err)
	}
}
