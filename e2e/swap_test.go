package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// other is a second model: a copy of the shipped one with a key of its own.
const other = "lmcaddy/other"

// withTwo returns a home with both.
func withTwo(t *testing.T) *harness.Home {
	t.Helper()
	h := harness.NewHome(t)
	h.AddModel(other, "other-f16.gguf", harness.ShippedModel(t))
	return h
}

func TestLoad_AHundredFirstRequestsStartOneProcess(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	var replies []<-chan harness.Reply
	for range 100 {
		replies = append(replies, s.Go(harness.ChatPath, harness.Ask(capital)))
	}
	for _, reply := range replies {
		if a := harness.Wait(t, "an answer", reply).Answer(s); a.Content != paris {
			t.Errorf("answer %q", a.Content)
		}
	}
	s.Engine()
	if n := strings.Count(s.Log(), "engine launched"); n != 1 {
		t.Errorf("%d engines were launched", n)
	}
}

func TestSwap_TwoHundredRequestsForTwoModelsWhereOneMayBeLoaded(t *testing.T) {
	t.Parallel()
	const clients, requests = 16, 200
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"max_loaded 1"}})
	todo := make(chan int, requests)
	for i := range requests {
		todo <- i
	}
	close(todo)
	failures := make(chan string, requests)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := range todo {
				model := []string{harness.Model, other}[i%2]
				reply := <-s.Go(harness.ChatPath, harness.Ask(capital).With("model", model))
				if content := reply.Get("choices.0.message.content").Str; reply.Status != http.StatusOK || content != paris {
					failures <- fmt.Sprintf("request %d: status %d, %s", i, reply.Status, reply.Body)
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	if n := len(s.Engines()); n > 1 {
		t.Errorf("%d engines run", n)
	}
	if log := s.Log(); strings.Contains(log, "broke off") || strings.Contains(log, "ended unexpectedly") {
		t.Errorf("an engine was cut off:\n%s", log)
	}
}

func TestSwap_AStreamIsNeverCutForAnotherModel(t *testing.T) {
	t.Parallel() // it mostly waits
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"max_loaded 1"}})
	st := s.Stream(harness.Long(1000))
	st.WaitContent()
	waits := s.Go(harness.ChatPath, harness.Ask(capital).With("model", other))
	st.WaitEnd()
	if !st.IsWhole() {
		t.Error("the stream was cut")
	}
	if a := harness.Wait(t, "the other model's answer", waits).Answer(s); a.Content != paris {
		t.Errorf("answer %q", a.Content)
	}
	if engine := s.Engine(); !strings.Contains(strings.Join(engine.Args, " "), "other-f16") {
		t.Errorf("the engine that is left: %v", engine.Args)
	}
}

func TestSwap_APinnedModelStays(t *testing.T) {
	t.Parallel()
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"max_loaded 1", "model " + harness.Model + " {", "	pin", "	preload", "}"}})
	s.Chat(harness.Ask(capital))
	engine := s.Engine()
	refused := s.Post(harness.ChatPath, harness.Ask(capital).With("model", other)).Want(t, http.StatusServiceUnavailable)
	if message := refused.Get("error.message").Str; !strings.Contains(message, "max_loaded") || !strings.Contains(message, other) {
		t.Errorf("message %q", message)
	}
	if s.Engine().PID != engine.PID {
		t.Error("the pinned model was evicted")
	}
}

func TestMemory_WhatNeverFitsIsRefusedBeforeAnythingIsEvicted(t *testing.T) {
	t.Parallel()
	s := harness.Start(withTwo(t), harness.Config{Engine: []string{"parallel 4"}, LM: []string{"memory_budget 150MiB"}})
	s.Chat(harness.Ask(capital)) // with a shorter context than the model's, since only that fits
	engine := s.Engine()
	refused := s.Post(harness.LoadPath, harness.Fields{"model": other, "context_length": 8192}).Want(t, http.StatusServiceUnavailable)
	message := refused.Get("error.message").Str
	for _, part := range []string{other, "8192 tokens", "150 MiB", "memory_budget", "context_length"} {
		if !strings.Contains(message, part) {
			t.Errorf("message %q lacks %q", message, part)
		}
	}
	if s.Engine().PID != engine.PID {
		t.Error("a model was evicted in vain")
	}
}

func TestMemory_RoomIsMadeByEviction(t *testing.T) {
	t.Parallel()
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"memory_budget 150MiB"}})
	for range 2 {
		for _, model := range []string{harness.Model, other} {
			if a := s.Chat(harness.Ask(capital).With("model", model)); a.Content != paris {
				t.Errorf("%s: %q", model, a.Content)
			}
			s.Engine()
		}
	}
}

// TestMemory_ModelsInUseStayTogether: both fit if one gets fewer slots than it would have alone.
func TestMemory_ModelsInUseStayTogether(t *testing.T) {
	t.Parallel()
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"memory_budget 300MiB"}})
	for range 4 {
		for _, model := range []string{harness.Model, other} {
			if a := s.Chat(harness.Ask(capital).With("model", model)); a.Content != paris {
				t.Errorf("%s: %q", model, a.Content)
			}
		}
	}
	if n := strings.Count(s.Log(), `"model loaded"`); n != 2 {
		t.Errorf("%d loads, want one of each model", n)
	}
	if got := s.Command("ps").Output; !strings.Contains(got, "smaller") {
		t.Errorf("neither is smaller than it would be alone:\n%s", got)
	}
}
