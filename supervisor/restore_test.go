package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// withSaved returns a server with one saved conversation, "system" and "one" of ann, whose engine was unloaded.
func withSaved(t *testing.T, script *fakeengine.Script, slots int) (h *home, first reply) {
	t.Helper()
	h = newHome(t, script, slots, later)
	first = h.say("ann", "system", "one")
	h.unload()
	h.kept(1)
	return h, first
}

// Whatever goes wrong with a restore, the request is answered, and a file that harms isn't used a second time.
func TestWarm_ARestoreFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule   fakeengine.Rule
		starts int
		anew   bool // the slot's content isn't trusted
	}{
		"refused":           {fakeengine.Rule{Status: 400}, 2, true},
		"an error":          {fakeengine.Rule{Status: 500}, 2, true},
		"wrong counts":      {fakeengine.Rule{PromptTokens: 3}, 2, true},
		"no answer":         {fakeengine.Rule{Status: 200, Body: "{}"}, 2, true},
		"the engine dies":   {fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}, 3, false},
		"the engine aborts": {fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash, Death: &fakeengine.Death{Signal: 6}}}}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.rule.Path = fakeengine.RestoreAction
			h, _ := withSaved(t, &fakeengine.Script{Rules: []fakeengine.Rule{tt.rule}}, 2)
			if got := h.say("ann", "system", "one", "answer", "two"); got.cached != 0 || got.anew != tt.anew {
				t.Errorf("%+v", got)
			}
			h.kept(0)
			if got := len(starts(h.fake)); got != tt.starts {
				t.Errorf("%d starts, want %d", got, tt.starts)
			}
			if c := h.counts(); c.Refused != 1 {
				t.Errorf("%+v", c)
			}
			if got := h.Overview(); len(got.Failing) > 0 || got.Instances[0].InUse > 0 {
				t.Errorf("%+v", got)
			}
			if got := h.say("ann", "system", "one", "answer", "two", "answer", "three"); got.cached == 0 || got.anew {
				t.Errorf("afterwards: %+v", got)
			}
		})
	}
}

// If only the connection breaks, the state isn't blamed.
func TestWarm_ARestoreIsNotAnswered(t *testing.T) {
	t.Parallel()
	rule := fakeengine.Rule{Path: fakeengine.RestoreAction, Times: 2, Cues: []fakeengine.Cue{{Do: fakeengine.Cut}}} // it is sent again once
	h, _ := withSaved(t, &fakeengine.Script{Rules: []fakeengine.Rule{rule}}, 1)
	if got := h.say("ann", "system", "one"); got.anew || got.cached > 0 {
		t.Errorf("%+v", got)
	}
	h.kept(1)
	if n := len(starts(h.fake)); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// The death of an engine at a restore is nobody else's fault: a request of another that was lost with it may be sent again, as one that
// can't have caused it alone.
func TestWarm_ADeathAtARestoreIsNotTheFaultOfOthers(t *testing.T) {
	t.Parallel()
	rules := []fakeengine.Rule{
		{Path: fakeengine.RestoreAction, Cues: []fakeengine.Cue{{Gate: "restoring", Do: fakeengine.Crash}}},
		{Path: "/v1/chat/completions", Nth: 1, Contains: "bystander", Gate: "never"},
	}
	h, _ := withSaved(t, &fakeengine.Script{Rules: rules}, 2)
	other, err := h.Acquire(t.Context(), h.saidBy("bob", "bystander"), nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan process.Loss, 1)
	go func() {
		_, err := other.Post(t.Context(), "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"bystander"}]}`))
		lost <- other.Lost(t.Context(), err)
		other.Release()
	}()
	h.fake.Wait(t, fakeengine.At("never"))
	answered := make(chan reply, 1)
	go func() { answered <- h.say("ann", "system", "one", "answer", "two") }()
	h.fake.Wait(t, fakeengine.At("restoring"))
	h.fake.Release("restoring")
	if got := <-lost; got.Kind != process.Ended || got.Alone {
		t.Errorf("%+v", got)
	}
	if got := <-answered; got.cached != 0 {
		t.Errorf("%+v", got)
	}
	h.kept(0)
}

// A client that disconnects during a restore leaves nothing behind.
func TestWarm_TheClientDisconnectsDuringARestore(t *testing.T) {
	t.Parallel()
	h, _ := withSaved(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.RestoreAction, Times: 1, Gate: "restoring"}}}, 1)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Acquire(ctx, h.saidBy("ann", "system", "one", "answer", "two"), nil)
		ended <- err
	}()
	h.fake.Wait(t, fakeengine.At("restoring"))
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	h.fake.Release("restoring")
	if all := h.Instances(); len(all) != 1 || all[0].InUse != 0 {
		t.Errorf("%+v", all)
	}
	h.kept(1)
	if got := h.say("ann", "system", "one", "answer", "two"); got.cached == 0 {
		t.Errorf("%+v", got)
	}
	h.empty()
}

// empty waits until the launch's folder has no file.
func (h *home) empty() {
	h.t.Helper()
	testkit.Eventually(h.t, "the launch's folder is empty", func() bool {
		left, _ := filepath.Glob(filepath.Join(h.dir, "launch", "*", "*"))
		return len(left) == 0
	})
}

// The supervisor may stop an engine during a restore. The request then gets the next one, and the state isn't blamed.
func TestWarm_AStopDuringARestore(t *testing.T) {
	t.Parallel()
	h, first := withSaved(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.RestoreAction, Times: 1, Gate: "restoring"}}}, 1)
	answered := make(chan reply, 1)
	go func() { answered <- h.say("ann", "system", "one", "answer", "two") }()
	h.fake.Wait(t, fakeengine.At("restoring"))
	all := h.Instances()
	h.Handle(schedule.Condemned{Gen: all[0].Gen, Reason: "a test says so"})
	if got := <-answered; got.cached != 0 && got.cached < first.prompt-10 {
		t.Errorf("%+v", got)
	}
}

// What a slot would lose is saved before another state takes its place.
func TestWarm_WhatWouldBeLostIsSavedFirst(t *testing.T) {
	t.Parallel()
	h, _ := withSaved(t, nil, 1)
	h.say("ann", "another", "talk")
	if got := h.say("ann", "system", "one", "answer", "two"); got.cached == 0 {
		t.Errorf("the first conversation: %+v", got)
	}
	h.kept(2)
	if got := h.say("ann", "another", "talk", "answer", "two"); got.cached == 0 {
		t.Errorf("the second conversation: %+v", got)
	}
	if got := h.acted(); !slices.Equal(got, []string{"save", "save", "restore", "save", "restore"}) {
		t.Errorf("actions %v", got)
	}
	h.empty()
}

// A state is only restored if it has much more of a prompt than the engine, and if that is quicker than to process this.
func TestKeeper_Weigh(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil, 1, later)
	shelf, err := h.store.Shelf(warm.Print{Model: "of a test", Files: []string{h.spec.Model.Path}})
	if err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	shelf.Processed(1000, time.Second)
	shelf.Restored(1e8, time.Second) // 500 ms and 50 ms for 40 MB
	k := &process.Slots{Shelf: shelf, Log: slog.New(slog.DiscardHandler)}
	for name, tt := range map[string]struct {
		slot  schedule.Loan
		bytes int64
		want  time.Duration
	}{
		"the slot has nothing":            {schedule.Loan{}, 40e6, time.Second},
		"the slot has much of it":         {schedule.Loan{Common: 449}, 40e6, 551 * time.Millisecond},
		"the slot has more":               {schedule.Loan{Common: 451}, 40e6, 0},
		"the cache has much of it":        {schedule.Loan{Cached: 449}, 40e6, 551 * time.Millisecond},
		"the cache has more":              {schedule.Loan{Cached: 451}, 40e6, 0},
		"a large file":                    {schedule.Loan{}, 80e6, 0},
		"little more than the engine has": {schedule.Loan{Common: 745}, 1, 0},
	} {
		if got := k.Weigh(&tt.slot, 1000, tt.bytes); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// States of other owners are used only where owners aren't isolated.
func TestWarm_OtherOwners(t *testing.T) {
	t.Parallel()
	for name, private := range map[string]bool{"shared": false, "isolated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil, 2, later)
			h.spec.Private = private
			h.say("ann", "system", "one")
			h.unload()
			h.kept(1)
			if got := h.say("bob", "system", "one"); (got.cached == 0) != private {
				t.Errorf("bob: %+v", got)
			}
			if private {
				if got := h.say("ann", "system", "one", "answer", "two"); got.cached == 0 || got.anew {
					t.Errorf("ann: %+v", got)
				}
			}
		})
	}
}

// No engine gets a file that isn't as it was written.
func TestWarm_DamagedFiles(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(content []byte) []byte{
		"cut":        func(c []byte) []byte { return c[:len(c)-1] },
		"half":       func(c []byte) []byte { return c[:len(c)/2] },
		"longer":     func(c []byte) []byte { return append(c, 0) },
		"a flip":     func(c []byte) []byte { c[len(c)/2] ^= 1; return c },
		"first byte": func(c []byte) []byte { c[0] ^= 1; return c },
		"nothing":    func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := withSaved(t, nil, 1)
			files, err := filepath.Glob(filepath.Join(h.dir, "*", "*.kv"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			content, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[0], damage(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := h.say("ann", "system", "one", "answer", "two"); got.cached != 0 {
				t.Errorf("%+v", got)
			}
			if got := h.acted(); !slices.Equal(got, []string{"save"}) {
				t.Errorf("actions %v", got)
			}
			h.kept(0)
		})
	}
}

// Another model under the same name, or the same with other arguments, has other states.
func TestWarm_OtherLaunches(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*home)
		want   bool // the state is used
	}{
		"other weights": {func(h *home) {
			if err := os.WriteFile(h.spec.Model.Path, []byte("WEIGHTS"), 0o600); err != nil {
				h.t.Fatal(err)
			}
		}, false},
		"another RoPE base":   {func(h *home) { h.spec.Args = []string{"--rope-freq-base", "5"} }, false},
		"other slots":         {func(h *home) { h.spec.Parallel = 2 }, false},
		"more threads":        {func(h *home) { h.spec.Args = []string{"--threads", "2"} }, true},
		"a longer context":    {func(h *home) { h.spec.ContextLength = 16384 }, true},
		"too short a context": {func(h *home) { h.spec.ContextLength = 256 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := withSaved(t, nil, 1)
			own := *h.spec
			h.spec = &own
			tt.change(h)
			if name == "too short a context" {
				lease := acquire(t, h.Supervisor, h.saidBy("ann", "system", "one", "answer", "two"))
				lease.Release()
			} else if got := h.say("ann", "system", "one", "answer", "two"); (got.cached > 0) != tt.want {
				t.Errorf("%+v", got)
			}
			if got := slices.Contains(h.acted(), "restore"); got != tt.want {
				t.Errorf("actions %v", h.acted())
			}
		})
	}
}
