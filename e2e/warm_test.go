package e2e

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// warmModel has random weights: its prompts are long, and its answers depend on all of the prompt.
const warmModel = "lmcaddy/warm"

const (
	// systemTokens is the length of the system prompts, which are worth saving.
	systemTokens = 700
	// newTokens is the most that may be processed of a prompt whose state was restored.
	newTokens = 150
)

// warmLines saves states soon.
var warmLines = []string{"max_loaded 1", "warm {", "	save_after 100ms", "	min_tokens 256", "}"}

func withWarm(t *testing.T) *harness.Home {
	t.Helper()
	h := harness.NewHome(t)
	h.AddRandom(warmModel, randommodel.Dense, 1)
	return h
}

func startWarm(h *harness.Home, more ...string) *harness.Server {
	return harness.Start(h, harness.Config{LM: append(more, warmLines...), Engine: []string{"parallel 2"}})
}

// evict has another model take the engine's place.
func evict(s *harness.Server) {
	s.T.Helper()
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		s.T.Errorf("the other model says %q", a.Content)
	}
}

// neverUnloaded returns the turns of a conversation of an engine that is never unloaded.
func neverUnloaded(t *testing.T, home *harness.Home, k *harness.Talk, says ...string) (turns []harness.Turn) {
	t.Helper()
	s := harness.Start(home, harness.Config{LM: []string{"warm off"}, Engine: []string{"parallel 2"}})
	k = k.Fork()
	for _, text := range says {
		turns = append(turns, k.Say(s, text))
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	return turns
}

func wantRestored(t *testing.T, got harness.Turn) {
	t.Helper()
	if got.Processed > newTokens {
		t.Errorf("%d of %d tokens of the prompt were processed", got.Processed, got.Prompt)
	}
}

func wantProcessed(t *testing.T, got harness.Turn) {
	t.Helper()
	if got.Processed != got.Prompt {
		t.Errorf("%d of %d tokens of the prompt were processed, want all", got.Processed, got.Prompt)
	}
}

// TestWarm_AConversationReturns has a conversation go on after its engine has ended in each way, and compares the answers with those of
// an engine that stays.
func TestWarm_AConversationReturns(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	config := harness.Config{LM: warmLines, Engine: []string{"parallel 1"}}
	s := harness.Start(h, config)
	departures := []struct {
		name  string
		leave func()
	}{
		{"its time to live passes", func() { s.WaitNoEngine(harness.Patience) }},
		{"another model takes its place", func() { evict(s) }},
		{"it is unloaded", func() {
			s.Post(harness.UnloadPath, harness.Fields{"instance_id": warmModel}).Want(t, http.StatusOK)
			s.WaitNoEngine(harness.Patience)
		}},
		{"lmcaddy is restarted", func() {
			s.Stop(syscall.SIGTERM, harness.Patience)
			s = harness.Start(h, config)
		}},
		{"lmcaddy is killed", func() {
			s.Kill()
			s = harness.Start(h, config)
		}},
		{"its engine is killed", func() {
			engine := s.Engine()
			engine.Kill(t)
			harness.Eventually(t, harness.Patience, "the engine has ended", func() bool { return !engine.Alive() })
		}},
	}
	// Each part begins with a question that makes the state worth saving again.
	play := func(leave func(i int, asked time.Time)) (turns []harness.Turn) {
		begin := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
		begin.SayWith(s, harness.Fields{"ttl": 1}, "Hello")
		for i := range departures {
			talk, asked := begin.Fork(), time.Now()
			talk.Say(s, harness.Words(uint64(2+i), 300))
			leave(i, asked)
			turns = append(turns, talk.Say(s, "Go on"))
		}
		return turns
	}
	returned := play(func(i int, asked time.Time) {
		h.WaitState(asked)
		departures[i].leave()
	})
	s.Stop(syscall.SIGINT, harness.Patience)
	s = harness.Start(h, harness.Config{LM: []string{"warm off"}, Engine: config.Engine})
	for i, stayed := range play(func(int, time.Time) {}) {
		got := returned[i]
		if got.Processed > newTokens {
			t.Errorf("%s: %d of %d tokens of the prompt were processed", departures[i].name, got.Processed, got.Prompt)
		}
		if got.Text != stayed.Text {
			t.Errorf("%s: the answer is %q, and %q of an engine that stays", departures[i].name, got.Text, stayed.Text)
		}
	}
}

// TestWarm_AQuestionBetween: with one slot, a question between the turns moves the conversation out of it, from where it can't be saved.
func TestWarm_AQuestionBetween(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := harness.Start(h, harness.Config{LM: warmLines, Engine: []string{"parallel 1"}})
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	question := func() { harness.NewTalk(warmModel, "You name conversations.").Say(s, "Name one about names.") }
	talk.Say(s, "Hello")
	question()
	talk.Say(s, "Go on")
	question()
	s.Post(harness.UnloadPath, harness.Fields{"instance_id": warmModel}).Want(t, http.StatusOK)
	s.WaitNoEngine(harness.Patience)
	wantRestored(t, talk.Say(s, "Go on"))
}

// TestWarm_OfEachArchitecture: a conversation goes on, and another one with the same system prompt is spared that.
func TestWarm_OfEachArchitecture(t *testing.T) {
	t.Parallel()
	shapes := map[string]randommodel.Shape{
		"lmcaddy/dense": randommodel.Dense, "lmcaddy/window": randommodel.SlidingWindow,
		"lmcaddy/recurrent": randommodel.Recurrent, "lmcaddy/hybrid": randommodel.Hybrid,
	}
	h := harness.NewHome(t)
	for model, shape := range shapes {
		h.AddRandom(model, shape, 1)
	}
	system := harness.NewTalk("", harness.Words(1, systemTokens))
	say := func(s *harness.Server, model, text string) (*harness.Talk, harness.Turn) {
		talk := system.Fork()
		talk.Model = model
		return talk, talk.Say(s, text)
	}
	s := startWarm(h)
	talks := map[string]*harness.Talk{}
	for model := range shapes { // each evicts the one before
		talk, first := say(s, model, "Hello")
		wantProcessed(t, first)
		talks[model] = talk
	}
	next := map[string]harness.Turn{}
	for model, talk := range talks {
		next[model] = talk.Say(s, "Go on")
	}
	for model := range shapes {
		if _, other := say(s, model, "What is the capital of France?"); other.Processed > newTokens {
			t.Errorf("%s, another conversation: %d of %d tokens were processed", model, other.Processed, other.Prompt)
		}
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	for model, got := range next {
		if got.Processed > newTokens {
			t.Errorf("%s: %d of %d tokens were processed", model, got.Processed, got.Prompt)
		}
		talk := system.Fork()
		talk.Model = model
		if want := neverUnloaded(t, h, talk, "Hello", "Go on")[1]; got.Text != want.Text {
			t.Errorf("%s: %q, and %q of an engine that stays", model, got.Text, want.Text)
		}
	}
}

// TestWarm_OfOneOwnerAlone: what was saved for one owner is restored for no other, unless owners share caches.
func TestWarm_OfOneOwnerAlone(t *testing.T) {
	t.Parallel()
	for mode, isShared := range map[string]bool{"shared": true, "private": false} {
		t.Run(mode, func(t *testing.T) {
			h := withWarm(t)
			s := harness.Start(h, harness.Config{LM: append([]string{"prompt_cache " + mode}, warmLines...), Engine: []string{"parallel 2"}, Site: []string{"lm_auth"}})
			ann, bob := s.As(created(t, h, "--name", "ann")), s.As(created(t, h, "--name", "bob"))
			talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
			begun := time.Now()
			talk.Fork().Say(ann, "Hello")
			h.WaitState(begun)
			evict(ann)
			if got := talk.Fork().Say(bob, "Hello"); isShared {
				wantRestored(t, got)
			} else {
				wantProcessed(t, got)
			}
			evict(ann)
			wantRestored(t, talk.Fork().Say(ann, "Hello"))
		})
	}
}

func TestWarm_FilesAreTheUsersOwn(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	begun := time.Now()
	harness.NewTalk(warmModel, harness.Words(1, systemTokens)).Say(s, "Hello")
	h.WaitState(begun)
	for path, mode := range modesBelow(t, h.WarmDir()) {
		if mode.IsDir() && mode.Perm() != 0o700 || mode.IsRegular() && mode.Perm() != 0o600 {
			t.Errorf("%s: %s", strings.TrimPrefix(path, h.WarmDir()), mode)
		}
	}
}

func modesBelow(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	modes := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			modes[path] = info.Mode()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return modes
}
