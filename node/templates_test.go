package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// TestTemplates_AreLearntOnce for each version of the engine, and for each set of arguments that change them.
func TestTemplates_AreLearntOnce(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{Rules: []fakeengine.Rule{{
		Path: "/apply-template", Contains: `"enable_thinking":true`, Status: 200, Body: `{"prompt":"Question1 <think>"}`,
	}, {}}}
	fake := fakeengine.Install(t, script)
	dir := withModel(t)
	rendered := func() (n int) {
		for _, e := range fake.Events() {
			if e.Kind == fakeengine.Rendered {
				n++
			}
		}
		return n
	}
	load := func(settings ModelSettings) (isNew bool) {
		t.Helper()
		before := rendered()
		n := openAt(t, dir, fake, settings)
		target, err := n.Names.Find(t.Context(), "tinychat")
		if err == nil {
			_, err = n.Loads.Load(t.Context(), target.Model, LoadOptions{}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		return rendered() > before
	}
	if !load(ModelSettings{}) {
		t.Error("nothing was learnt at the first load")
	}
	n := openAt(t, dir, fake, ModelSettings{})
	target, err := n.Names.Find(t.Context(), "tinychat")
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Reasoning{Options: []string{"off", "on"}} // neither of which is the default
	if diff := cmp.Diff(want, n.Engines.Reasoning(&target.Model)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	list, err := n.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list[0].Reasoning); diff != "" {
		t.Errorf("in the list (-want +got):\n%s", diff)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	for _, step := range []struct {
		why      string
		settings ModelSettings
		version  string
		isNew    bool
	}{
		{"a restart", ModelSettings{}, "", false},
		{"other arguments", ModelSettings{Args: []string{"--threads", "1"}}, "", false},
		{"arguments that change it", ModelSettings{Args: []string{"--reasoning-budget", "0"}}, "", true},
		{"the same again", ModelSettings{Args: []string{"--reasoning-budget", "0"}}, "", false},
		{"another version", ModelSettings{}, "0.8.0 (build 12000, commit fake)", true},
		{"the same version", ModelSettings{}, "0.8.0 (build 12000, commit fake)", false},
	} {
		fake.Set(func(s *fakeengine.Script) { s.Version = step.version })
		if isNew := load(step.settings); isNew != step.isNew {
			t.Errorf("after %s: learnt is %v", step.why, isNew)
		}
	}
	if err := os.WriteFile(dir.Templates(), []byte(`{"version":1,"templates":{"x"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if !load(ModelSettings{}) {
		t.Error("a file that is cut off was taken as whole")
	}
}

// TestTemplates_OfMLXModels are learnt by their engine's Python, while the engine loads. Before that, and where it can't be asked, a guess is
// listed, and refuses nothing.
func TestTemplates_OfMLXModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script fakemlx.Script
		args   []string
		learns bool
	}{
		"a Python that renders":      {script: fakemlx.Script{Renders: true}, learns: true},
		"one that doesn't":           {},
		"arguments for the template": {script: fakemlx.Script{Renders: true}, args: []string{"--chat-template-args", "{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.Load.Gate = "load"
			fake := fakemlx.Install(t, &c.script)
			dir := home.Dir(t.TempDir())
			if err := os.CopyFS(filepath.Join(dir.Models(), "lmcaddy", "tinychat-mlx"), os.DirFS("../testdata/mlx/lmcaddy/tinychat-mlx")); err != nil {
				t.Fatal(err)
			}
			n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
			push(t, n, 1, Settings{Engines: map[string]EngineSettings{"mlx_lm": {Command: []string{fake.Path}, Args: c.args}}})
			target, err := n.Names.Find(t.Context(), "tinychat")
			if err != nil {
				t.Fatal(err)
			}
			m := target.Model
			if guess := n.Engines.Caps(m).Reasoning; (guess == nil) != (len(c.args) == 0) {
				t.Errorf("before the load, %v are offered", guess)
			}
			loaded := make(chan error, 1)
			go func() {
				_, err := n.Loads.Load(t.Context(), m, LoadOptions{}, nil)
				loaded <- err
			}()
			fake.Wait(t, fakekit.At("load"))
			if c.learns {
				testkit.Eventually(t, "it is learnt beside the load", func() bool { return n.Engines.Caps(m).Template != nil })
			}
			fake.Release("load")
			if err := <-loaded; err != nil {
				t.Fatal(err)
			}
			want := m.Reasoning
			if c.learns {
				want = catalog.Reasoning{Options: []string{"off", "on"}, Default: "on"}
			}
			if diff := cmp.Diff(want, n.Engines.Reasoning(&m)); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			if is := n.Engines.Caps(m).Template != nil; is != c.learns {
				t.Errorf("known: %t, want %t", is, c.learns)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// openAt opens a node in a home with an engine and the settings of the shipped model.
func openAt(t *testing.T, dir home.Dir, fake *fakeengine.Engine, settings ModelSettings) *Node {
	t.Helper()
	n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
	push(t, n, 1, Settings{
		Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off}),
		Models:  map[string]ModelSettings{"lmcaddy/tinychat": settings},
	})
	return n
}
