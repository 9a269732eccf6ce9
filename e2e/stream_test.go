package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	count   = "Count to 30"
	counted = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30"
)

func TestStream_SaysWhatTheAnswerInOnePieceSays(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, streamSaysWhatTheAnswerInOnePieceSays)
}

func streamSaysWhatTheAnswerInOnePieceSays(t *testing.T, s *harness.Server) {
	whole := s.Chat(harness.Ask(count))
	if whole.Content != counted {
		t.Errorf("in one piece: %q", whole.Content)
	}
	st := s.Stream(harness.Ask(count))
	streamed := st.Answer()
	if streamed.Usage != (harness.Usage{}) {
		t.Errorf("usage that was not asked for: %+v", streamed.Usage)
	}
	streamed.Usage = whole.Usage
	if diff := cmp.Diff(whole, streamed); diff != "" {
		t.Errorf("one piece (-) and streamed (+) differ:\n%s", diff)
	}
	contents := 0
	for _, chunk := range st.Chunks() {
		if chunk.Get("object").Str != "chat.completion.chunk" || !chunk.Get("choices.0").Exists() {
			t.Errorf("not a chunk with a choice: %s", chunk.Raw)
		}
		for _, word := range []string{"prompt_progress", "reasoning_content", `"usage"`} {
			if strings.Contains(chunk.Raw, word) {
				t.Errorf("a chunk has %s: %s", word, chunk.Raw)
			}
		}
		if chunk.Get("choices.0.delta.content").Str != "" {
			contents++
		}
	}
	if contents < 30 || st.Reads() < 5 {
		t.Errorf("the answer came in %d pieces, and arrived in %d", contents, st.Reads())
	}
}

func TestStream_TellsUsageInAChunkOfItsOwnWhenAsked(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, streamTellsUsageInAChunkOfItsOwnWhenAsked)
}

func streamTellsUsageInAChunkOfItsOwnWhenAsked(t *testing.T, s *harness.Server) {
	st := s.Stream(harness.Ask(count).With("stream_options", harness.Fields{"include_usage": true}))
	a := st.Answer()
	if a.Content != counted {
		t.Errorf("content %q", a.Content)
	}
	if u := a.Usage; u.Prompt < 1 || u.Completion < 30 || u.Total != u.Prompt+u.Completion {
		t.Errorf("usage %+v", u)
	}
	chunks := st.Chunks()
	for i, chunk := range chunks {
		isLast := i == len(chunks)-1
		if isLast != chunk.Get("usage").IsObject() {
			t.Errorf("chunk %d of %d: the last, and no other, has the usage: %s", i+1, len(chunks), chunk.Raw)
		}
		if choices := chunk.Get("choices"); isLast && (!choices.IsArray() || len(choices.Array()) > 0) {
			t.Errorf("the usage's chunk has choices: %s", chunk.Raw)
		}
	}
}

func TestStream_ArrivesWhileTheModelIsStillSpeaking(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, streamArrivesWhileTheModelIsStillSpeaking)
}

func streamArrivesWhileTheModelIsStillSpeaking(t *testing.T, s *harness.Server) {
	st := s.Stream(harness.Long(700))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	before := len(st.Chunks())
	engine.Resume(t)
	a := st.Answer()
	if a.Finish != "length" || !strings.HasPrefix(a.Content, counted) {
		t.Errorf("finish_reason %q, content %q", a.Finish, a.Content)
	}
	// The engine was paused in between, and nearly every token is a chunk: later chunks were generated later. Some have only a part
	// of a character.
	if after := len(st.Chunks()); before >= after || after < 400 || st.Reads() < 50 {
		t.Errorf("%d chunks came before the pause, %d in all, in %d reads", before, after, st.Reads())
	}
}

func TestStream_OfTwoEnginesThatDieEndsInAnError(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, streamOfTwoEnginesThatDieEndsInAnError)
}

func streamOfTwoEnginesThatDieEndsInAnError(t *testing.T, s *harness.Server) {
	st := s.Stream(harness.Long(8000))
	st.WaitContent() // so it can be read before the engine sends the last token, which it never does
	crashTwice(t, s)
	st.WaitEnd()
	chunks := st.Chunks()
	if last := chunks[len(chunks)-1]; st.IsWhole() || last.Get("error.message").Str == "" {
		t.Errorf("whole: %v; the last chunk: %s", st.IsWhole(), last.Raw)
	}
}

// endBusy ends the only engine that is computing and doesn't have the given process id. It returns its process id.
func endBusy(t *testing.T, s *harness.Server, not int, end func(harness.Process, testing.TB)) int {
	t.Helper()
	var busy harness.Process
	harness.Eventually(t, harness.Patience, "an engine computes", func() bool {
		engines := s.Engines()
		if len(engines) != 1 || engines[0].PID == not {
			return false
		}
		if busy.PID != engines[0].PID {
			busy = engines[0]
		}
		return busy.CPU() > 600*time.Millisecond // the load takes less
	})
	end(busy, t)
	return busy.PID
}

func TestStream_InOnePieceIsAskedAgainOfAnotherEngine(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	request := harness.Long(1000)
	replied := s.Go(harness.ChatPath, request)
	endBusy(t, s, 0, harness.Process.Kill)
	reply := harness.Wait(t, "the reply", replied).Want(t, http.StatusOK)
	if got := reply.Get("usage.completion_tokens").Int(); got != 1000 {
		t.Errorf("%d tokens: %s", got, reply.Get("choices.0.finish_reason"))
	}
}

// TestStream_InOnePieceOfTwoEnginesThatDieIsRefused: the request may be the reason, and is refused from then on.
func TestStream_InOnePieceOfTwoEnginesThatDieIsRefused(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	replied := s.Go(harness.ChatPath, harness.Long(30000))
	endBusy(t, s, endBusy(t, s, 0, harness.Process.Crash), harness.Process.Crash)
	reply := harness.Wait(t, "the reply", replied).Want(t, http.StatusBadRequest)
	wantOpenAIError(t, reply, "invalid_request_error", "request_crashes_engine")
	again := s.Post(harness.ChatPath, harness.Long(30000)).Want(t, http.StatusBadRequest)
	wantOpenAIError(t, again, "invalid_request_error", "request_crashes_engine")
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("another request: %q", a.Content)
	}
}

func TestStream_AfterAnEngineHasDiedTheNextRequestStartsItAnew(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	dead := map[int]bool{}
	for i := range 5 { // the client may retry before the server has noticed
		st := s.Stream(harness.Long(300 - i)) // the same request would be refused the third time
		st.WaitContent()
		engine := s.Engine()
		if dead[engine.PID] {
			t.Fatalf("the engine is process %d, which was killed", engine.PID)
		}
		dead[engine.PID] = true
		engine.Kill(t)
		st.WaitEnd()
		if a := s.Chat(harness.Ask(capital)); a.Content != paris {
			t.Errorf("%q", a.Content)
		}
	}
}
