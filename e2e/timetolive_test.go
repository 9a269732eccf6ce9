package e2e

import (
	"net/http"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestTTL_OfARequestCountsFromTheEndOfTheLast(t *testing.T) {
	t.Parallel() // it mostly waits
	eachEngine(t, harness.Config{}, tTLOfARequestCountsFromTheEndOfTheLast)
}

func tTLOfARequestCountsFromTheEndOfTheLast(t *testing.T, s *harness.Server) {
	st := s.Stream(harness.Long(1000).With("ttl", 5))
	st.WaitContent()
	engine := s.Engine()
	st.WaitEnd()
	if !st.IsWhole() {
		t.Fatal("the stream was cut")
	}
	if !engine.Alive() {
		t.Error("the model was unloaded at once")
	}
	harness.Eventually(t, harness.Patience, "the model is unloaded", func() bool { return len(s.Engines()) == 0 })
	if ids := s.IDs(); len(ids) != 0 {
		t.Errorf("still listed: %v", ids)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("loaded again: %q", a.Content)
	}
}

func TestTTL_IdleTTLIsOfModelsLoadedOnFirstUse(t *testing.T) {
	t.Parallel() // it mostly waits
	s := harness.Start(withTwo(t), harness.Config{LM: []string{"idle_ttl 5s"}})
	s.Post(harness.LoadPath, harness.Fields{"model": other}).Want(t, http.StatusOK)
	s.Chat(harness.Ask(capital))
	if n := len(s.Engines()); n != 2 {
		t.Fatalf("%d engines run", n)
	}
	harness.Eventually(t, harness.Patience, "the model that was loaded on first use is unloaded", func() bool { return len(s.Engines()) == 1 })
	if ids := s.IDs(); len(ids) != 1 || ids[0] != other {
		t.Errorf("left: %v", ids)
	}
}

func TestAlias_NamesAModel(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"model " + harness.Model + " {", "	alias gpt-4o-mini claude-*", "}"}})
	for _, name := range []string{"gpt-4o-mini", "claude-sonnet-9"} {
		if a := s.Chat(harness.Ask(capital).With("model", name)); a.Content != paris {
			t.Errorf("%s: %q", name, a.Content)
		}
	}
	s.Post(harness.ChatPath, harness.Ask(capital).With("model", "gpt-4o")).Want(t, http.StatusNotFound)
	s.Engine()
}

func TestQueue_IsBounded(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{Engine: []string{"parallel 1"}, LM: []string{"queue 2"}})
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	replies := make(chan harness.Reply)
	for range 4 { // of which two may wait
		reply := s.Go(harness.ChatPath, harness.Ask(capital))
		go func() { replies <- <-reply }()
	}
	for range 2 {
		refused := harness.Wait(t, "a refusal", replies).Want(t, http.StatusTooManyRequests)
		if refused.Header.Get("Retry-After") == "" || refused.Get("error.code").Str != "queue_full" {
			t.Errorf("header %v, body %s", refused.Header, refused.Body)
		}
	}
	engine.Resume(t)
	st.Cancel()
	for range 2 {
		if a := harness.Wait(t, "the answer of one that waited", replies).Answer(s); a.Content != paris {
			t.Errorf("answer %q", a.Content)
		}
	}
}

func TestReload_ChangedSettingsOfOneModelTouchThatOneOnly(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(withTwo(t), config)
	for _, model := range []string{harness.Model, other} {
		s.Chat(harness.Ask(capital).With("model", model))
	}
	before := s.Engines()
	st := s.Stream(harness.Long(1000))
	st.WaitContent()
	config.LM = []string{"model " + harness.Model + " {", "	context_length 4096", "	parallel 2", "}"}
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	st.WaitEnd()
	if !st.IsWhole() {
		t.Error("the stream was cut")
	}
	harness.Eventually(t, harness.Patience, "the changed model runs anew", func() bool {
		length := s.Get("/api/v1/models").Get(`models.#(key=="` + harness.Model + `").loaded_instances.0.config.context_length`)
		return length.Int() == 4096
	})
	after := s.Engines()
	if len(before) != 2 || len(after) != 2 {
		t.Fatalf("before %v, after %v", before, after)
	}
	if before[1].PID != after[0].PID && before[1].PID != after[1].PID {
		t.Error("the other model was touched")
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after the reload: %q", a.Content)
	}
}
