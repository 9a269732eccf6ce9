package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// told is what a client has seen of a stream of any dialect.
type told struct {
	text  string          // thinking as well
	final string          // the same, as the end of the stream has it; empty where it doesn't
	ends  int             // how often the answer ended
	ids   map[string]bool // of the answer
	fault string
}

// note takes an event.
func (o *told) note(ev gjson.Result) {
	if id := ev.Get("id").Str + ev.Get("response.id").Str + ev.Get("message.id").Str; id != "" {
		o.ids[id] = true
	}
	switch kind := ev.Get("type").Str; kind {
	case "": // chunks
		choice := ev.Get("choices.0")
		o.text += choice.Get("delta.reasoning").Str + choice.Get("delta.content").Str + choice.Get("text").Str
		if choice.Get("finish_reason").Str != "" {
			o.ends++
		}
	case "content_block_delta":
		o.text += ev.Get("delta.text").Str + ev.Get("delta.thinking").Str
	case "response.output_text.delta", "response.reasoning_text.delta":
		o.text += ev.Get("delta").Str
	case "message.delta", "reasoning.delta":
		o.text += ev.Get("content").Str
	case "message_stop", "chat.end", "response.completed", "response.incomplete":
		o.ends++
		for _, item := range append(ev.Get("result.output").Array(), ev.Get("response.output").Array()...) {
			o.final += item.Get("content").Str + item.Get("content.0.text").Str
		}
	}
	if fault := ev.Get("error"); fault.IsObject() {
		o.fault = fault.Get("code").Str + fault.Get("type").Str
	}
}

// streamed asks for a stream, and calls a function with what has been told after each event.
func streamed(t *testing.T, s *harness.Server, path string, fields harness.Fields, each func(*told)) *told {
	t.Helper()
	body, err := json.Marshal(fields.With("model", harness.Model).With("stream", true))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	o := &told{ids: map[string]bool{}}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
			o.note(gjson.Parse(data))
			each(o)
		}
	}
	if err := lines.Err(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v, after %+v", resp.StatusCode, err, o)
	}
	return o
}

func undisturbed(*told) {}

// killingAt kills an engine when some of the text has been told.
func killingAt(engine harness.Process, length int) func(*told) {
	isKilled := false
	return func(o *told) {
		if !isKilled && len(o.text) >= length {
			isKilled = true
			_ = syscall.Kill(engine.PID, syscall.SIGKILL)
		}
	}
}

// outliving are requests with answers of about a hundred tokens.
var outliving = []struct {
	name, path string
	fields     harness.Fields
}{
	{"chat", harness.ChatPath, harness.Fields{"messages": userSays("Count to 30")}},
	{"chat, by events", harness.ChatPath, harness.Fields{"messages": userSays("Count to 30"), "stop": []string{"28"}}},
	{"messages", "/v1/messages", harness.Fields{"messages": userSays("Count to 30"), "max_tokens": 300}},
	{"responses", harness.RespondPath, harness.Fields{"input": "Count to 30"}},
	{"native", "/api/v1/chat", harness.Fields{"input": "Count to 30"}},
	{"completions", "/v1/completions", harness.Fields{"prompt": "<|im_start|>user\nCount to 30<|im_end|>\n<|im_start|>assistant\n", "max_tokens": 90}},
}

func userSays(text string) []harness.Fields {
	return []harness.Fields{{"role": "user", "content": text}}
}

// TestOutlive_FiftyKills: every client gets the whole answer, as if nothing had happened.
func TestOutlive_FiftyKills(t *testing.T) {
	t.Parallel()
	// Half of the processor time of a load is clearing the memory of four contexts of the usual length.
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"model " + harness.Model + " {", "	context_length 1024", "}"}, Engine: []string{"parallel 1"}})
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	fieldsOf := func(i int) harness.Fields {
		if i%2 == 1 { // it isn't repeated, although it is the same
			return outliving[i].fields.With("temperature", 0.0001)
		}
		return outliving[i].fields.With("temperature", 0)
	}
	var wanted []*told
	for i, ask := range outliving {
		wanted = append(wanted, streamed(t, s, ask.path, fieldsOf(i), undisturbed))
	}
	for i := range 50 {
		i %= len(outliving)
		ask, fields, want := outliving[i], fieldsOf(i), wanted[i]
		at := 1 + random.IntN(len(want.text)*2/3)
		got := streamed(t, s, ask.path, fields, killingAt(s.Engine(), at))
		if got.text != want.text || got.ends != 1 || len(got.ids) > 1 || got.fault != "" {
			t.Errorf("seed %d, %s, killed after %d bytes:\n%+v\nundisturbed:\n%+v", seed, ask.name, at, got, want)
		}
	}
	repeated, continued := strings.Count(s.Log(), `"way":"repeated"`), strings.Count(s.Log(), `"way":"continued"`)
	t.Logf("%d answers were repeated, %d continued", repeated, continued)
	if repeated < 10 || continued < 10 { // the others were complete when the engine was killed
		t.Errorf("%d answers were repeated, %d continued", repeated, continued)
	}
}

// TestOutlive_RandomText: what was told stays, and nothing is told twice.
func TestOutlive_RandomText(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for _, ask := range outliving {
		fields := ask.fields.With("temperature", 1)
		streamed(t, s, ask.path, fields, undisturbed)
		got := streamed(t, s, ask.path, fields, killingAt(s.Engine(), 5))
		if got.ends != 1 || len(got.ids) > 1 || got.fault != "" || got.final != "" && got.final != got.text {
			t.Errorf("%s: %+v", ask.name, got)
		}
	}
}

// TestOutlive_WhatItCannot: the middle of a call, and of an answer that is held to a schema, can't be in a prompt.
func TestOutlive_WhatItCannot(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	long := harness.Fields{"type": "object", "required": []string{"a"}, "properties": harness.Fields{"a": harness.Fields{"type": "string", "minLength": 300}}}
	format := harness.Fields{"type": "json_schema", "json_schema": harness.Fields{"schema": long}}
	tools := []harness.Fields{{"type": "function", "function": harness.Fields{"name": "say", "parameters": long}}}
	ask := harness.Fields{"messages": userSays("Count to 30"), "max_tokens": 500, "temperature": 1}
	called := 0
	for name, fields := range map[string]harness.Fields{
		"a schema":           ask.With("response_format", format),
		"a schema, repeated": ask.With("response_format", format).With("temperature", 0),
		"a call":             ask.With("tools", tools).With("tool_choice", "required"),
	} {
		streamed(t, s, harness.ChatPath, harness.Ask(capital), undisturbed)
		kill := killingAt(s.Engine(), 0)
		got := streamed(t, s, harness.ChatPath, fields, func(o *told) {
			if called++; called%20 == 0 {
				kill(o)
			}
		})
		wantsFault := !strings.Contains(name, "repeated")
		if strings.Contains(got.fault, "engine_failed") != wantsFault || (got.ends > 0) == wantsFault {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// crashTwice has the engine crash that answers a request, and the one that goes on with it.
func crashTwice(t *testing.T, s *harness.Server) {
	t.Helper()
	crashed := s.Engine()
	crashed.Crash(t)
	harness.Eventually(t, harness.Patience, "another engine goes on", func() bool {
		ps := gjson.Parse(s.Home.Command("ps", "--json").Output).Get("instances.0")
		if ps.Get("status").Str != "ready" || ps.Get("in_use").Int() == 0 || int(ps.Get("pid").Int()) == crashed.PID {
			return false
		}
		s.Engine().Crash(t)
		return true
	})
}

// TestOutlive_ARequestOnWhichTwoEnginesCrash isn't tried a third time.
func TestOutlive_ARequestOnWhichTwoEnginesCrash(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	fields := harness.Long(4000).With("temperature", 0.5)
	streamed(t, s, harness.ChatPath, harness.Ask(capital), undisturbed)
	crashed := map[int]bool{}
	next := 1
	got := streamed(t, s, harness.ChatPath, fields, func(o *told) {
		if len(o.text) < next || len(crashed) == 2 {
			return
		}
		for _, engine := range s.Engines() {
			if !crashed[engine.PID] {
				crashed[engine.PID] = true
				_ = syscall.Kill(engine.PID, syscall.SIGSEGV)
				next = len(o.text) + 1000 // more than is on its way
			}
		}
	})
	if len(crashed) != 2 || !strings.Contains(got.fault, "request_crashes_engine") || got.ends != 0 {
		t.Errorf("%d engines have crashed: %+v", len(crashed), got)
	}
	if again := s.Post(harness.ChatPath, fields.With("stream", true)); again.Status != http.StatusBadRequest || !strings.Contains(again.Body, "request_crashes_engine") {
		t.Errorf("%d %s", again.Status, again.Body)
	}
}
