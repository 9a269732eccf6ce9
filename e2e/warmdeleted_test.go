package e2e

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// waitNoState waits until nothing is left in the warm store.
func waitNoState(h *harness.Home) {
	h.T.Helper()
	harness.Eventually(h.T, harness.Patience, "the states are deleted", func() bool { return len(h.StateFiles()) == 0 })
}

// savedState has the server save the state of a conversation.
func savedState(s *harness.Server, seed uint64) *harness.Talk {
	s.T.Helper()
	begun := time.Now()
	talk := harness.NewTalk(warmModel, harness.Words(seed, systemTokens))
	talk.Say(s, "Hello")
	s.WaitState(begun)
	return talk
}

func TestWarmDeleted_SwitchedOff(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	config := harness.Config{Port: harness.FreePort(t), LM: warmLines, Engine: []string{"parallel 2"}}
	off := config
	off.LM = []string{"max_loaded 1", "warm off"}
	s := harness.Start(h, config)
	talk := savedState(s, 1)
	if r := s.Reload(off.String()); r.Status != 0 {
		t.Fatal(r.Output)
	}
	waitNoState(h)
	evict(s)
	wantProcessed(t, talk.Say(s, "Go on"))
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatal(r.Output)
	}
	evict(s) // the engine was started when no states were kept
	savedState(s, 2)
	s.Stop(syscall.SIGINT, harness.Patience)
	harness.Start(h, off)
	waitNoState(h)
}

func TestWarmDeleted_WithItsConversation(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	kept := savedState(s, 1) // belongs to no stored conversation
	ask := harness.NativeAsk("Hello").With("model", warmModel).With("system_prompt", harness.Words(2, systemTokens)).With("max_output_tokens", 8)
	begun := time.Now()
	first := s.NativeChat(ask).Get("response_id").Str
	h.WaitState(begun)
	begun = time.Now()
	second := s.NativeChat(ask.With("input", harness.Words(3, 300)).After(first)).Get("response_id").Str
	h.WaitState(begun)
	if n := len(h.StateFiles()); n < 2 {
		t.Fatalf("%d states are saved", n)
	}
	for _, id := range []string{second, first} {
		s.Do(http.MethodDelete, harness.ResponsesPath+id, nil).Want(t, http.StatusOK)
	}
	harness.Eventually(t, harness.Patience, "the conversation's states are deleted", func() bool { return len(h.StateFiles()) == 1 })
	evict(s)
	wantRestored(t, kept.Say(s, "Go on"))
}

func TestWarmDeleted_WithItsToken(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := harness.Start(h, harness.Config{LM: warmLines, Engine: []string{"parallel 2"}, Site: []string{"lm_auth"}})
	ann, bob := created(t, h, "--name", "ann"), created(t, h, "--name", "bob")
	savedState(s.As(ann), 1)
	kept := savedState(s.As(bob), 2)
	id, _, _ := strings.Cut(strings.TrimPrefix(ann, "sk-lm-"), ":")
	if r := h.Command("token", "revoke", id); r.Status != 0 {
		t.Fatal(r.Output)
	}
	harness.Eventually(t, harness.Patience, "ann's states are deleted", func() bool { return len(h.StateFiles()) == 1 })
	evict(s.As(bob))
	wantRestored(t, kept.Say(s.As(bob), "Go on"))
}

func TestWarmDeleted_WithItsModel(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	savedState(s, 1)
	evict(s)
	if r := h.Command("rm", warmModel, "--yes"); r.Status != 0 {
		t.Fatal(r.Output)
	}
	waitNoState(h)
}

func TestWarmDeleted_ByHand(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	savedState(s, 1)
	path := h.StateFiles()[0]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	listed := func() []gjson.Result {
		status, out, messages := h.CommandOutputs("warm", "ls", "--json")
		if status != 0 {
			t.Fatal(messages)
		}
		return gjson.Get(out, "states").Array()
	}
	all := listed()
	if len(all) != 1 || all[0].Get("model").Str != warmModel || all[0].Get("size_bytes").Int() != info.Size() || all[0].Get("tokens").Int() < systemTokens/2 {
		t.Errorf("%v", all)
	}
	if r := h.Command("warm", "clear", harness.Model); r.Status == 0 && len(h.StateFiles()) != 1 {
		t.Errorf("another model's states were deleted: %s", r.Output)
	}
	if r := h.Command("warm", "clear"); r.Status != 0 || len(h.StateFiles()) != 0 || len(listed()) != 0 {
		t.Errorf("status %d, left: %v: %s", r.Status, h.StateFiles(), r.Output)
	}
	savedState(s, 2)
	s.Stop(syscall.SIGINT, harness.Patience)
	if all := listed(); len(all) != 1 { // of a server that doesn't run
		t.Errorf("%v", all)
	}
	if r := h.Command("warm", "clear", warmModel); r.Status != 0 || len(h.StateFiles()) != 0 {
		t.Errorf("status %d, left: %v: %s", r.Status, h.StateFiles(), r.Output)
	}
}
