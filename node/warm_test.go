package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/echoengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// A setting because of which no states are kept, or that has no effect, is told about; one that works isn't.
func TestWarm_WarnsOfWhatDoesNothing(t *testing.T) {
	t.Parallel()
	const (
		useless = "arguments keep the engine from saving them"
		cannot  = "its engine can't save states"
		alloff  = "warm on has no effect"
		old     = "this version of the engine can't save them"
	)
	for name, tt := range map[string]struct {
		script *fakeengine.Script
		engine EngineSettings
		models map[string]ModelSettings
		off    bool
		want   []string
	}{
		"the defaults":            {},
		"arguments that work":     {engine: EngineSettings{Args: []string{"--threads", "1"}}, models: map[string]ModelSettings{"tinychat": {Warm: new(true)}}},
		"a shared cache":          {engine: EngineSettings{Args: []string{"-t", "1", "-kvu"}}, want: []string{useless, "engine=llama_server", "arguments=[-kvu]"}},
		"no cache, of a model":    {models: map[string]ModelSettings{"tinychat": {Args: []string{"--no-cache-prompt"}}}, want: []string{useless, "model=tinychat"}},
		"switched off as well":    {models: map[string]ModelSettings{"tinychat": {Args: []string{"--no-cache-prompt"}, Warm: new(false)}}},
		"all off":                 {engine: EngineSettings{Args: []string{"-kvu"}}, off: true},
		"on, and all off":         {models: map[string]ModelSettings{"tinychat": {Warm: new(true)}}, off: true, want: []string{alloff, "model=tinychat"}},
		"an engine that can't":    {models: map[string]ModelSettings{"canyon": {Warm: new(false)}}, want: []string{cannot, "model=canyon", "engine=echo"}},
		"an engine that is older": {script: &fakeengine.Script{RemoveFlags: []string{"--slot-save-path"}}, want: []string{old}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := withModel(t)
			model := filepath.Join(dir.Models(), "echo", "canyon")
			if err := os.MkdirAll(model, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(model, "canyon.echo"), []byte("echo\ncontext: 777\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var log lines
			n := reserve(t, dir).Open(slog.New(slog.DiscardHandler), Engine{echoengine.Engine(), echoengine.Wire{}})
			t.Cleanup(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			tt.engine.Path, tt.engine.Sandbox = fakeengine.Install(t, tt.script).Path, schedule.Off
			s := Settings{
				Log: slog.New(slog.NewTextHandler(&log, nil)), Engines: llamaServer(tt.engine), Models: tt.models, Warm: WarmSettings{Settings: warm.Settings{Off: tt.off}},
			}
			push(t, n, 1, s)
			n.warnIdle(&s)
			for _, want := range tt.want {
				if !log.has(want) {
					t.Errorf("%q isn't said:\n%s", want, &log.text)
				}
			}
			for _, text := range []string{useless, cannot, alloff, old} {
				if len(tt.want) == 0 && log.has(text) {
					t.Errorf("%q is said:\n%s", text, &log.text)
				}
			}
		})
	}
}

// Which requests choose their slots, and of which none is saved.
func TestSpec_Slots(t *testing.T) {
	t.Parallel()
	all, err := filepath.Abs("../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	const chat, embedding = "lmcaddy/tinychat", "lmcaddy/tinyembed"
	withArgs := func(args ...string) Settings {
		return Settings{Models: map[string]ModelSettings{chat: {Args: args}}}
	}
	for name, tt := range map[string]struct {
		settings Settings
		key      string
		slotted  bool
		cold     bool
	}{
		"of a language model":          {Settings{}, chat, true, false},
		"of an embedding model":        {Settings{}, embedding, false, false},
		"with arguments":               {withArgs("--threads", "1"), chat, true, false},
		"with a shared cache":          {withArgs("-kvu"), chat, false, false},
		"with another number of slots": {withArgs("-np", "7"), chat, false, false},
		"of a model that isn't warm":   {Settings{Models: map[string]ModelSettings{chat: {Warm: new(false)}}}, chat, true, true},
		"of none that is":              {Settings{Warm: WarmSettings{Settings: warm.Settings{Off: true}}}, chat, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, home.Dir(t.TempDir()))
			tt.settings.ModelsDirs = []string{all}
			push(t, n, 1, tt.settings)
			target, err := n.Names.Find(t.Context(), tt.key)
			if err != nil {
				t.Fatal(err)
			}
			for _, owner := range []string{"", "ann"} { // the second Spec is made of a cached one
				spec, err := n.Loads.firstUse(t.Context(), &target.Model, Demand{Demand: schedule.Demand{Owner: owner}})
				if err != nil {
					t.Fatal(err)
				}
				if cold := spec.Recipe.(recipe).cold; spec.Slotted != tt.slotted || cold != tt.cold {
					t.Errorf("owner %q: slotted %v, cold %v", owner, spec.Slotted, cold)
				}
			}
			if _, ok := n.Engines.PromptKey(&target.Model); ok != (tt.key == chat) {
				t.Errorf("there is a key for prompts: %v", ok)
			}
		})
	}
}
