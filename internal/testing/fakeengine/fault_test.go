package fakeengine_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func cues(all ...fakeengine.Cue) *fakeengine.Script {
	return &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: all}}}
}

func TestCue_CrashAfterSomeDeltas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		death *fakeengine.Death
		want  string
	}{
		{nil, aborted}, {&fakeengine.Death{}, killed}, {&fakeengine.Death{Code: 3, Lines: []string{"GGML_ASSERT(false) failed"}}, "exit status 3"}, {&fakeengine.Death{Signal: 6}, aborted},
	} {
		r := ready(t, cues(fakeengine.Cue{After: 2, Do: fakeengine.Crash, Death: c.death}), childMode)
		s := r.stream("")
		s.contents(2)
		if rest, err := s.rest(); err == nil || errors.Is(err, io.EOF) || len(rest) > 0 {
			t.Errorf("after the crash came %q and %v", rest, err)
		}
		r.wantExit(c.want)
		if c.death != nil && len(c.death.Lines) > 0 && !strings.Contains(r.stderr.String(), c.death.Lines[0]) {
			t.Errorf("standard error:\n%s", r.stderr.String())
		}
	}
}

func TestCue_HangNoticesThatTheClientGoes(t *testing.T) {
	t.Parallel()
	r := ready(t, cues(fakeengine.Cue{After: 1, Do: fakeengine.Hang}), nil)
	s := r.stream(`,"sse_ping_interval":1`)
	s.contents(1)
	for line := ""; line != ":\n"; {
		var err error
		if line, err = s.lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	s.resp.Body.Close()
	r.awaitN(fakeengine.Cancelled, 1)
}

func TestChat_CancelledWhileStreaming(t *testing.T) {
	t.Parallel()
	rule := fakeengine.Rule{Answer: fakeengine.Answer{Chunks: 1001}, Cues: []fakeengine.Cue{{After: 1000, Gate: "never"}}}
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{rule}}, nil)
	s := r.stream("")
	s.contents(1000)
	r.Wait(t, fakeengine.At("never"))
	s.resp.Body.Close()
	r.awaitN(fakeengine.Cancelled, 1)
}

func TestCue_CutGarbageAndFault(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "cut-now", Cues: []fakeengine.Cue{{Do: fakeengine.Cut}}},
		{Contains: "cut", Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Cut}}},
		{Contains: "garbage", Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Garbage, Bytes: []byte("data: {\xff\n\n")}}},
		{Contains: "fault", Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Fault}}},
		{Contains: "early", Cues: []fakeengine.Cue{{Do: fakeengine.Fault, Status: 503, Message: "no"}}},
		{Contains: "undone", NoDone: true},
	}}, nil)

	s := r.stream(`,"user":"cut"`)
	s.contents(1)
	if rest, err := s.rest(); !errors.Is(err, io.ErrUnexpectedEOF) || len(rest) > 0 {
		t.Errorf("cut: %q, %v", rest, err)
	}
	if _, err := r.do(chatPath, chatBody(`"user":"cut-now"`)); err == nil {
		t.Error("cut before the headers, and yet an answer")
	}
	s = r.stream(`,"user":"garbage"`)
	s.contents(1)
	if rest, err := s.rest(); !errors.Is(err, io.EOF) || rest[0] != "{\xff" || rest[len(rest)-1] != "[DONE]" {
		t.Errorf("garbage: %q, %v", rest, err)
	}
	s = r.stream(`,"user":"fault"`)
	s.contents(1)
	rest, err := s.rest()
	want := `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`
	if !errors.Is(err, io.EOF) || len(rest) != 1 || rest[0] != want {
		t.Errorf("fault: %q, %v", rest, err)
	}
	if status, body := r.ask(chatPath, chatBody(`"user":"early","stream":true`)); status != 503 || gjson.Get(body, "error.message").Str != "no" {
		t.Errorf("early fault: %d %s", status, body)
	}
	rest, err = r.stream(`,"user":"undone"`).rest()
	if !errors.Is(err, io.EOF) || strings.Contains(strings.Join(rest, ""), "[DONE]") {
		t.Errorf("undone: %q, %v", rest, err)
	}
}

func TestGate_HoldsTheFirstTokenAndTheMiddle(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "first", Cues: []fakeengine.Cue{{After: 2, Gate: "second"}}}}}, nil)
	s := r.stream(`,"return_progress":true`)
	r.Wait(t, fakeengine.At("first"))
	if first, err := s.next(); err != nil || !gjson.Get(first, "prompt_progress").Exists() {
		t.Fatalf("first event: %s, %v", first, err)
	}
	r.Release("first")
	s.contents(2)
	r.Wait(t, fakeengine.At("second"))
	r.Release("second")
	wantStream(t, s, `text " the"`, `text " fake"`, `text " engine."`, "finish stop timings=yes", "[DONE]")
}

func TestRules_TimesNthAndSet(t *testing.T) {
	t.Parallel()
	answer := func(text string) fakeengine.Answer { return fakeengine.Answer{Text: text} }
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Times: 2, Answer: answer("twice")}, {Nth: 4, Answer: answer("fourth")}, {Answer: answer("else")},
	}}, nil)
	say := func() string {
		_, body := r.ask(chatPath, chatBody(""))
		return gjson.Get(body, "choices.0.message.content").Str
	}
	for i, want := range []string{"twice", "twice", "else", "fourth", "else"} {
		if got := say(); got != want {
			t.Errorf("request %d: %q, want %q", i+1, got, want)
		}
	}
	r.Set(func(s *fakeengine.Script) { s.Rules = []fakeengine.Rule{{Answer: answer("changed")}} })
	if got := say(); got != "changed" {
		t.Errorf("after Set: %q", got)
	}
	r.Set(func(s *fakeengine.Script) { s.Rules = []fakeengine.Rule{{Times: 1, Answer: answer("once")}} })
	if got := say() + ", " + say(); got != "once, Hello from the fake engine." {
		t.Errorf("a changed rule counts anew: %q", got)
	}
}

func TestSlots_QueueInOrderWithoutLimit(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 1, Gate: "one"}, {Nth: 2, Gate: "two"}}}, nil, "-np", "2")
	answered := make(chan error, 4)
	for n := 1; n <= 4; n++ {
		go func() {
			resp, err := r.do(chatPath, chatBody(""))
			if err == nil {
				resp.Body.Close()
			}
			answered <- err
		}()
		if n <= 2 {
			r.awaitN(fakeengine.Serving, n)
		} else {
			r.awaitN(fakeengine.Queued, n)
		}
	}
	if status, _ := r.ask("/slots?fail_on_no_slot=1", ""); status != 503 {
		t.Errorf("no slot is free, and yet %d", status)
	}
	r.Release("two")
	r.awaitN(fakeengine.Finished, 4)
	r.Release("one")
	for range 4 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	var order []int
	for _, e := range r.Events() {
		switch e.Kind {
		case fakeengine.Serving:
			order = append(order, e.N)
		case fakeengine.Finished:
			order = append(order, -e.N)
		}
	}
	if len(order) != 8 || order[2] != -2 || order[3] != 3 || order[4] != -3 || order[5] != 4 || order[6] != -4 || order[7] != -1 {
		t.Errorf("served (and finished, negative): %v", order)
	}
}

func TestSlots_AQueuedClientThatGoesIsForgotten(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 1, Cues: []fakeengine.Cue{{After: 1, Gate: "one"}}}}}, nil, "-np", "1")
	first := r.stream("")
	r.Wait(t, fakeengine.At("one"))
	second := r.abandon()
	r.awaitN(fakeengine.Queued, 2)
	second()
	r.awaitN(fakeengine.Cancelled, 2)
	r.Release("one")
	if _, err := first.rest(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 {
		t.Errorf("the slot isn't free: %d", status)
	}
}
