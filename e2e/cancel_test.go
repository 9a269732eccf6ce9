package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// abandoned is a request that a client cancels. It takes much longer than cancelling it and sending another.
var abandoned = harness.Long(1000)

var oneSlot = harness.Config{Engine: []string{"parallel 1"}}

func TestCancel_OfALongStreamFreesTheEngine(t *testing.T) {
	t.Parallel()
	eachEngine(t, oneSlot, wantFreed(func(s *harness.Server) {
		st := s.Stream(abandoned)
		st.WaitContent()
		st.Cancel()
	}))
}

func TestCancel_OfALongAnswerInOnePieceFreesTheEngine(t *testing.T) {
	t.Parallel()
	eachEngine(t, oneSlot, wantFreed(func(s *harness.Server) {
		engine := s.Engine()
		before := engine.CPU()
		giveUp := s.GoUntil(harness.ChatPath, abandoned)
		harness.Eventually(t, harness.Patience, "the engine computes", func() bool { return engine.CPU() > before+20*time.Millisecond })
		giveUp()
	}))
}

// wantFreed checks that cancelled requests don't occupy the engine: it has one slot, so the next request waits until the
// engine is done with the one before. The CPU time of four cancelled requests, each followed by another one, is compared
// with that of one complete request: it would be four times as much if they were computed to the end.
func wantFreed(askAndGiveUp func(*harness.Server)) func(*testing.T, *harness.Server) {
	return func(t *testing.T, s *harness.Server) { freed(t, s, askAndGiveUp) }
}

func freed(t *testing.T, s *harness.Server, askAndGiveUp func(*harness.Server)) {
	t.Helper()
	s.Chat(harness.Ask(capital)) // loads the model
	engine := s.Engine()
	begun := engine.CPU() // independent of the machine's load
	if a := s.Chat(abandoned); a.Finish != "length" {
		t.Fatalf("finish_reason %q", a.Finish)
	}
	once := engine.CPU() - begun

	begun = engine.CPU()
	for range 4 {
		askAndGiveUp(s)
		if a := s.Chat(harness.Ask(capital)); a.Content != paris {
			t.Errorf("%q", a.Content)
		}
	}
	took := engine.CPU() - begun
	t.Logf("one to the end: %s; four given up: %s", once, took)
	if took > 2*once {
		t.Error("what was given up was computed all the same")
	}
	s.Engine()
}

func TestCancel_OfAWaitingRequestTakesNobodysTurn(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{Engine: []string{"parallel 1"}})
	st := s.Stream(harness.Long(700))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	giveUp := s.GoUntil(harness.ChatPath, harness.Long(8000))
	for range 20 { // so it has arrived and waits
		s.Get("/v1/models").Want(t, http.StatusOK)
	}
	waits := s.Go(harness.ChatPath, harness.Ask(capital))
	giveUp()
	engine.Resume(t)
	if a := harness.Wait(t, "the answer of the one that waits", waits).Answer(s); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	if a := st.Answer(); a.Finish != "length" {
		t.Errorf("the first one's finish_reason is %q", a.Finish)
	}
}
