package e2e

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	capital = "What is the capital of France?"
	paris   = "The capital of France is Paris."
)

func TestChat_LoadsTheModelOnFirstUseAndAnswers(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, chatLoadsTheModelOnFirstUseAndAnswers)
}

func chatLoadsTheModelOnFirstUseAndAnswers(t *testing.T, s *harness.Server) {
	if ids, engines := s.IDs(), s.Engines(); len(ids) > 0 || len(engines) > 0 {
		t.Fatalf("before the first request there are %v and %v", ids, engines)
	}
	a := s.Chat(harness.Ask(capital))
	if a.Content != paris || a.Finish != "stop" {
		t.Errorf("content %q, finish_reason %q", a.Content, a.Finish)
	}
	if a.Reasoning == "" {
		t.Error("the model thought, but there is no reasoning")
	}
	if a.Model != harness.Model {
		t.Errorf("model %q, want the instance's id", a.Model)
	}
	if u := a.Usage; u.Prompt < 1 || u.Completion < 1 || u.Total != u.Prompt+u.Completion {
		t.Errorf("usage %+v", u)
	}
	if diff := cmp.Diff([]string{harness.Model}, s.IDs()); diff != "" {
		t.Errorf("the loaded models (-want +got):\n%s", diff)
	}
	s.Engine()
}

func TestChat_KnowsTheModelByItsBareName(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	a := s.Chat(harness.Ask(capital).With("model", harness.Bare))
	if a.Content != paris || a.Model != harness.Model {
		t.Errorf("%q by %q", a.Content, a.Model)
	}
	s.Chat(harness.Ask(capital))
	s.Engine() // the two names are one model
}

func TestChat_RemembersNothingFromOneRequestToTheNext(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	conversation := harness.Ask("").With("messages", []harness.Fields{
		{"role": "user", "content": "My name is Ada."},
		{"role": "assistant", "content": "Nice to meet you, Ada!"},
		{"role": "user", "content": "What is my name?"},
	})
	if a := s.Chat(conversation); a.Content != "Your name is Ada." {
		t.Errorf("with the name said before: %q", a.Content)
	}
	if a := s.Chat(harness.Ask("What is my name?")); a.Content == "Your name is Ada." {
		t.Errorf("without: %q", a.Content)
	}
}

func TestChat_FirstRequestsAtOnceStartOneEngine(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, chatFirstRequestsAtOnceStartOneEngine)
}

func chatFirstRequestsAtOnceStartOneEngine(t *testing.T, s *harness.Server) {
	var replies []<-chan harness.Reply
	for range 8 {
		replies = append(replies, s.Go(harness.ChatPath, harness.Ask(capital)))
	}
	seen := map[int]bool{}
	for answered := 0; answered < len(replies); {
		for _, p := range s.Engines() {
			if p.Parent() == s.PID { // not a subshell of the start script
				seen[p.PID] = true
			}
		}
		select {
		case reply := <-replies[answered]:
			answered++
			if a := reply.Answer(s); a.Content != paris {
				t.Errorf("request %d: %q", answered, a.Content)
			}
		default:
		}
	}
	seen[s.Engine().PID] = true
	if len(seen) != 1 {
		t.Errorf("there were %d engines: %v", len(seen), seen)
	}
	if diff := cmp.Diff([]string{harness.Model}, s.IDs()); diff != "" {
		t.Errorf("the loaded models (-want +got):\n%s", diff)
	}
}

func TestChat_PreloadedModelIsLoadedBeforeAnybodyAsks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"model " + harness.Model + " {", "preload", "}"}})
	harness.Eventually(t, harness.Patience, "the model is loaded", func() bool {
		return cmp.Equal(s.IDs(), []string{harness.Model})
	})
	engine := s.Engine()
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	if now := s.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

func TestChat_WithoutLoadingOnFirstUseAnUnloadedModelIsRefused(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"jit off"}})
	reply := s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, http.StatusNotFound)
	wantOpenAIError(t, reply, "invalid_request_error", "model_not_loaded")
	s.Post(harness.LoadPath, harness.Fields{"model": harness.Model}).Want(t, http.StatusOK)
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
}
