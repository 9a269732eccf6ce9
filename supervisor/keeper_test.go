package supervisor

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// A conversation goes on where it was, however its engine has ended.
func TestWarm_AConversationOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		saveAfter time.Duration
		end       func(h *home)
	}{
		"unloaded": {later, (*home).unload},
		"saved when idle": {soon, func(h *home) {
			h.kept(1)
			h.unload()
		}},
		"saved and killed": {soon, func(h *home) {
			h.kept(1)
			kill(h.t, h.Instances()[0].PID)
			testkit.Eventually(h.t, "it is gone", func() bool { return len(h.Instances()) == 0 })
		}},
		"the server was closed": {later, func(h *home) {
			h.close()
			h.open()
		}},
		"another model took its room": {later, func(h *home) {
			h.Handle(schedule.Configured{Limits: schedule.Limits{SaveTokens: 300, SaveAfter: later, Instances: 1}})
			if _, err := h.Ensure(h.t.Context(), fakeSpec("other", 1)); err != nil {
				h.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil, 2, tt.saveAfter)
			first := h.say("ann", "system", "one")
			tt.end(h)
			h.kept(1)
			second := h.say("ann", "system", "one", "answer", "two")
			if second.cached < first.prompt-10 || second.anew {
				t.Errorf("%d tokens of %d are cached: %+v", second.cached, first.prompt, second)
			}
			if c := h.counts(); c.Restores != 1 || c.Misses != 0 || c.Spared != int64(second.cached) {
				t.Errorf("%+v", c)
			}
			h.say("ann", "system", "one", "answer", "two", "answer", "three") // its slot has more than the file
			if c := h.counts(); c.Restores != 1 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// All slots are saved, one after the other, and what is saved isn't saved again.
func TestWarm_AllConversationsAreSaved(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil, 3, soon)
	for _, s := range []string{"one", "two", "three"} {
		h.say("ann", s)
	}
	h.kept(3)
	h.unload()
	if got := h.acted(); !slices.Equal(got, []string{"save", "save", "save"}) {
		t.Errorf("actions %v", got)
	}
}

// What nobody wants saved, or what is too little, isn't.
func TestWarm_WhatIsNotSaved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*home, *schedule.Demand){
		"unsaved":  func(_ *home, d *schedule.Demand) { d.Unsaved = true },
		"no chain": func(_ *home, d *schedule.Demand) { d.Prompt = nil },
		"switched off": func(h *home, _ *schedule.Demand) {
			h.Handle(schedule.Configured{Limits: schedule.Limits{SaveTokens: 300}})
		},
		"too little": func(h *home, _ *schedule.Demand) {
			h.Handle(schedule.Configured{Limits: schedule.Limits{SaveTokens: 5000, SaveAfter: later}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil, 2, later)
			d := h.saidBy("ann", "one")
			change(h, &d)
			lease := acquire(t, h.Supervisor, d)
			h.answer(lease, "one")
			lease.Release()
			h.unload()
			if got := h.acted(); len(got) > 0 {
				t.Errorf("actions %v", got)
			}
		})
	}
}

// A failed save harms nothing: it is told once, nothing is saved for a while, and the slot stays as it is.
func TestWarm_ASaveFails(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fakeengine.Rule{
		"full disk":    {Status: 500},
		"no answer":    {Status: 200, Body: "{}"},
		"rubbish":      {Status: 200, Body: "no JSON"},
		"wrong counts": {PromptTokens: 3}, // fewer than the prompt has
		"no file":      {Status: 200, Body: `{"n_saved":900,"n_written":900,"timings":{"save_ms":1}}`},
		"another size": {Status: 200, Body: `{"n_saved":900,"n_written":1,"timings":{"save_ms":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule.Path = fakeengine.SaveAction
			h := newHome(t, &fakeengine.Script{Rules: []fakeengine.Rule{rule}}, 1, soon)
			h.say("ann", "one")
			h.fake.Wait(t, fakeengine.Is(fakeengine.Acted))
			if next := h.say("ann", "one", "answer", "two"); next.cached == 0 {
				t.Error("the slot has lost what it held")
			}
			h.empty()
			if name != "wrong counts" {
				testkit.Eventually(t, "it is told", func() bool { return h.log.count("couldn't be saved") == 1 })
			}
			h.unload()
			h.kept(0)
			if n := h.log.count("level=WARN"); n > 1 {
				t.Errorf("%d warnings", n)
			}
			if got := h.acted(); name != "wrong counts" && len(got) > 1 {
				t.Errorf("actions %v", got)
			}
		})
	}
}

// What is deleted while it is saved isn't kept.
func TestWarm_WhatIsForgotten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		forgot schedule.Forgot
		kept   int
	}{
		"the owner":            {schedule.Forgot{Owner: "ann"}, 0},
		"the conversation":     {schedule.Forgot{Conversation: "resp_1"}, 0},
		"the model":            {schedule.Forgot{Key: "m"}, 0},
		"another owner":        {schedule.Forgot{Owner: "bob"}, 1},
		"another conversation": {schedule.Forgot{Conversation: "resp_2"}, 1},
		"another model":        {schedule.Forgot{Key: "n"}, 1},
		"another's":            {schedule.Forgot{Owner: "bob", Conversation: "resp_1"}, 1},
		"nothing":              {schedule.Forgot{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.SaveAction, Gate: "saving"}}}, 1, soon)
			d := h.saidBy("ann", "one")
			d.Conversation = "resp_1"
			lease := acquire(t, h.Supervisor, d)
			h.answer(lease, "one")
			lease.Release()
			h.fake.Wait(t, fakeengine.At("saving"))
			h.Handle(tt.forgot)
			h.fake.Release("saving")
			h.fake.Wait(t, fakeengine.Is(fakeengine.Acted))
			h.unload()
			h.Close() // all that was saved is kept by then
			if got := len(h.store.List()); got != tt.kept {
				t.Errorf("%d states are kept, want %d", got, tt.kept)
			}
		})
	}
}

// Files are readable for this user only from the first byte, and the engine's folder is gone with it.
func TestWarm_FilesArePrivate(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.SaveAction, Cues: []fakeengine.Cue{{After: 1, Gate: "half"}}}}}
	h := newHome(t, script, 1, soon)
	h.say("ann", "one")
	h.fake.Wait(t, fakeengine.At("half"))
	files, err := filepath.Glob(filepath.Join(h.dir, "launch", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || runtime.GOOS == "linux" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	h.fake.Release("half")
	h.kept(1)
	h.empty()
}

// An instance that leaves isn't held up for long by a save that hangs, and the half of a file isn't kept.
func TestWarm_LeavingDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.SaveAction, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Hang}}}}}
	h := newHome(t, script, 1, later)
	h.say("ann", "one")
	begun := time.Now()
	h.unload()
	if took := time.Since(begun); took < schedule.SaveWithin || took > 10*schedule.SaveWithin {
		t.Errorf("it took %v", took)
	}
	h.kept(0)
	if h.log.count("level=WARN") > 1 { // that the engine was killed
		t.Error("it is told more than once")
	}
}

// A state isn't saved if it wouldn't be restored, nor if somebody would wait longer than it is worth.

// savedAll waits until no slot is being saved.
func (h *home) savedAll() {
	h.t.Helper()
	testkit.Eventually(h.t, "no slot is being saved", func() (none bool) {
		h.look(func() {
			none = !slices.ContainsFunc(h.state.Instances, func(in *schedule.Instance) bool { return in.IsSaving() })
		})
		return none
	})
}

// An engine is told of a folder for states only if they can be kept.
func TestWarm_WhichEnginesSave(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*home)
		want   bool
	}{
		"a chat model":           {func(*home) {}, true},
		"slots share a cache":    {func(h *home) { h.spec.Slotted = false }, false},
		"an argument forbids it": {func(h *home) { h.spec.Args = []string{"--no-cache-prompt"} }, false},
		"an old build": {func(h *home) {
			h.fake.Set(func(s *fakeengine.Script) { s.RemoveFlags = []string{"--slot-save-path"} })
		}, false},
		"the model's file can't be read": {func(h *home) { h.spec.Model.Path = "/none/m.gguf" }, false},
		"nothing is kept":                {func(h *home) { h.store.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil, 1, later)
			tt.change(h)
			h.say("ann", "one")
			argv := strings.Join(h.fake.Wait(t, fakeengine.Is(fakeengine.Started)).Argv, " ")
			if got := strings.Contains(argv, "--slot-save-path "+filepath.Join(h.dir, "launch")); got != tt.want {
				t.Errorf("%s", argv)
			}
			h.unload()
			if got := len(h.acted()) > 0; got != tt.want {
				t.Errorf("actions %v", h.acted())
			}
		})
	}
}

// What nobody wants any more says nothing of the disk: the next state is saved.
func TestWarm_WhatIsUnwantedIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(*warm.Store)
		next      string // owner
	}{
		"its owner is deleted": {func(s *warm.Store) { s.DeleteOwner("ann") }, "bob"},
		"off, and on":          {func(s *warm.Store) { s.Configure(warm.Settings{Off: true}) }, "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.SaveAction, Gate: "saving", Times: 1}}}, 1, soon)
			h.say("ann", "one")
			h.fake.Wait(t, fakeengine.At("saving"))
			tt.meanwhile(h.store)
			h.fake.Release("saving")
			h.savedAll() // else the store may be on again before it is given the state
			h.store.Configure(warm.Settings{})
			h.say(tt.next, "two")
			h.kept(1)
			if n := h.log.count("level=WARN"); n > 0 {
				t.Errorf("%d warnings", n)
			}
		})
	}
}
