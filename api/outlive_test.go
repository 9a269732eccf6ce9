package api

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/node"
)

// outliving are requests for a stream in each dialect.
var outliving = map[string]struct {
	path, body string
	parts      int // requests to the engine; 0: one
}{
	"chat":             {"/v1/chat/completions", `"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]`, 0},
	"chat, begun":      {"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One"}]`, 0},
	"chat, by events":  {"/v1/chat/completions", `"stop":["stop"],"messages":[{"role":"user","content":"hi"}]`, 0},
	"chat, with tools": {"/v1/chat/completions", `"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"}]`, 0},
	"choices":          {"/v1/chat/completions", `"n":3,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]`, 3},
	"v0 chat":          {"/api/v0/chat/completions", `"messages":[{"role":"user","content":"hi"}]`, 0},
	"messages":         {"/v1/messages", `"max_tokens":99,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]`, 0},
	"responses":        {"/v1/responses", `"input":"hi"`, 0},
	"background":       {"/v1/responses", `"input":"hi","background":true`, 0},
	"native":           {"/api/v1/chat", `"input":"hi"`, 0},
	"completions":      {"/v1/completions", `"prompt":"hi","stream_options":{"include_usage":true}`, 0},
	"prompts":          {"/v1/completions", `"prompt":["hi","there"]`, 2},
	"probabilities":    {"/v1/completions", `"prompt":"hi","logprobs":2,"stop":["stop"]`, 0},
	"token ids":        {"/v1/completions", `"prompt":[1,2,3]`, 0},
}

// accidental is what differs between two streams with the same answer.
var accidental = regexp.MustCompile(`"(id|item_id|response_id|created|created_at|completed_at|tokens_per_second|time_to_first_token(_seconds)?|generation_time|progress)":("[^"]*"|[0-9.e+-]+)`)

// likelihood is one of a token. That of a fake engine depends on the place.
var likelihood = regexp.MustCompile(`:?-[0-9.]+`)

var loadTime = regexp.MustCompile(`,"model_load_time_seconds":[0-9.e+-]+`)

// essence is a stream without what is accidental. The choices of one stream come in any order.
func essence(stream string) string {
	stream = loadTime.ReplaceAllString(accidental.ReplaceAllString(stream, `"$1":0`), "")
	stream = likelihood.ReplaceAllString(stream, "")
	frames := strings.SplitAfter(stream, "\n\n")
	var all [3]strings.Builder
	for _, frame := range frames {
		_, data, _ := strings.Cut(frame, "data: ")
		if frame != endpoint.Comment && !strings.Contains(frame, "model_load.") {
			all[min(2, gjson.Get(data, "choices.0.index").Int())].WriteString(frame)
		}
	}
	return all[0].String() + all[1].String() + all[2].String()
}

// TestOutlive_EveryDialect: a stream whose engine is lost is the one that it would have been, byte by byte.
func TestOutlive_EveryDialect(t *testing.T) {
	t.Parallel()
	answers := map[string]fakeengine.Answer{
		"text":           {Text: `One "two" three four five`},
		"thinking":       {Reasoning: "I think of it", Text: "One two"},
		"characters":     {Pieces: []string{"日", "本\n", "\\ ", "🎉 ", "é"}},
		"one text twice": {Pieces: []string{"a", "a", "a", "a", "a"}},
	}
	ways := map[string]string{"repeated": "0", "continued": "1"}
	for dialect, tt := range outliving {
		for kind, answer := range answers {
			if dialect == "chat, begun" && kind == "thinking" { // a text can't be followed by thinking
				continue
			}
			if kind != "text" && !slices.Contains([]string{"chat", "native"}, dialect) {
				continue // what they have in common
			}
			for way, temperature := range ways {
				t.Run(dialect+", "+kind+", "+way, func(t *testing.T) {
					t.Parallel()
					whole := fakeengine.Rule{Answer: answer, CachedTokens: 2, Times: max(1, tt.parts)}
					lost := fakeengine.Rule{Answer: answer, CachedTokens: 2, Cues: []fakeengine.Cue{{After: 3, Do: fakeengine.Crash}}}
					script := firstProcess(whole, lost)
					whole.Times = 0
					script.Rules = []fakeengine.Rule{whole}
					s := serve(t, script, threeSlots, withoutStates)
					body := `{"model":"tinychat","stream":true,"temperature":` + temperature + `,` + tt.body + `}`
					want := s.do("POST", tt.path, body)
					got := s.do("POST", tt.path, body)
					if diff := cmp.Diff(essence(want.body), essence(got.body)); diff != "" || want.status != 200 || strings.Count(want.body, "\n\n") < 6 {
						t.Errorf("(-undisturbed +lost):\n%s", diff)
					}
					if n := len(s.starts()); n != 2 {
						t.Errorf("%d engines were started", n)
					}
				})
			}
		}
	}
}

// threeSlots is as many as there are choices.
var threeSlots = func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 3) }

// lostAfter returns a script whose first engine crashes after n pieces of its answer and the gate "seen". The engines after it
// don't.
func lostAfter(n int, rule fakeengine.Rule) *fakeengine.Script {
	lost := rule
	lost.Cues = []fakeengine.Cue{{After: n, Gate: "seen", Do: fakeengine.Crash}}
	script := firstProcess(lost)
	script.Rules = []fakeengine.Rule{rule}
	return script
}

// outlive posts a request for a stream, lets the engine crash when the client has read seen, and returns the whole answer.
func (s *server) outlive(path, body, seen string) answer {
	s.t.Helper()
	status, begun, rest := s.open(path, body, seen, 1)
	s.fake.Release("seen")
	left, err := io.ReadAll(rest)
	if err != nil {
		s.t.Errorf("%v after %s", err, left)
	}
	return answer{status: status, body: begun + string(left)}
}

// TestOutlive_WhatItCannot ends in an error, after what the client has seen.
func TestOutlive_WhatItCannot(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`
	const format = `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`
	text := fakeengine.Answer{Text: `{"a": "one two"}`}
	calling := fakeengine.Answer{Text: "I call", Calls: []fakeengine.ToolCall{{Name: "f", Arguments: `{"a":"one two"}`}}}
	for name, tt := range map[string]struct {
		script *fakeengine.Script
		seen   string // before the engine is lost; empty: nothing needs to be
		more   string
		code   string // empty: the answer is whole
		asked  int
	}{
		"in a call":                  {lostAfter(4, fakeengine.Rule{Answer: calling}), `"name":"f"`, `,"temperature":0` + tools, "engine_failed", 1},
		"before a call":              {lostAfter(1, fakeengine.Rule{Answer: calling}), `"I"`, `,"temperature":1` + tools, "", 2},
		"held to a schema":           {lostAfter(2, fakeengine.Rule{Answer: text}), `"content":`, `,"temperature":1` + format, "engine_failed", 1},
		"held to a schema, repeated": {lostAfter(2, fakeengine.Rule{Answer: text}), `"content":`, `,"temperature":0` + format, "", 2},
		"a required call":            {lostAfter(4, fakeengine.Rule{Answer: fakeengine.Answer{Text: `{"name": "f", "arguments": {"a":"one two"}}`}}), `"name":"f"`, `,"temperature":1,"tool_choice":"required"` + tools, "engine_failed", 1},
		"every engine is lost":       {&fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}}}, "", `,"temperature":1`, "request_crashes_engine", 2},
		"every engine, repeated":     {&fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}}}, "", `,"temperature":0`, "request_crashes_engine", 2},
		"it isn't taken":             {noSecond(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}), "", `,"temperature":1`, "engine_failed", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.script)
			got := s.outlive("/v1/chat/completions", `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]`+tt.more+`}`, tt.seen)
			all := chunks(t, got.body)
			last := answer{body: all[len(all)-1]}
			if tt.code == "" && last.body != "[DONE]" || tt.code != "" && (last.code() != tt.code || !isWholeError(last.body)) {
				t.Errorf("%s", all)
			}
			if n := s.requests(); n != tt.asked {
				t.Errorf("the engines were asked %d times, want %d", n, tt.asked)
			}
			if n := strings.Count(got.body, `"finish_reason":"`); tt.code == "" && n != 1 || tt.code != "" && n != 0 {
				t.Errorf("it ends %d times: %s", n, got.body)
			}
		})
	}
}

// TestOutlive_AnotherText: where the same request is answered otherwise, the answer goes on after what was said.
func TestOutlive_AnotherText(t *testing.T) {
	t.Parallel()
	script := firstProcess(fakeengine.Rule{Answer: fakeengine.Answer{Text: "one two"}, Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}})
	script.Rules = []fakeengine.Rule{
		{Contains: `"role":"assistant"`, Answer: fakeengine.Answer{Text: "one two three"}},
		{Answer: fakeengine.Answer{Text: "one 2 3"}},
	}
	s := serve(t, script)
	got := s.outlive("/v1/chat/completions", `{"model":"tinychat","stream":true,"seed":1,"messages":[{"role":"user","content":"hi"}]}`, `"content":" two"`)
	texts, ends := choicesOf(t, got.body)
	if texts[0] != "one two three" || ends[0] != "stop" || s.requests() != 3 {
		t.Errorf("%v, %v, %d requests", texts, ends, s.requests())
	}
}

// TestOutlive_Choices: one that is complete stays so, one goes on, and one is begun.
func TestOutlive_Choices(t *testing.T) {
	t.Parallel()
	rules := func(cues ...fakeengine.Cue) []fakeengine.Rule {
		return []fakeengine.Rule{
			{Contains: `"seed":1,`, Answer: fakeengine.Answer{Text: "a b"}},
			{Contains: `"seed":2,`, Answer: fakeengine.Answer{Text: "c d e"}, Cues: cues},
			{Contains: `"seed":3,`, Answer: fakeengine.Answer{Text: "f g h"}},
		}
	}
	first := rules(fakeengine.Cue{After: 2, Gate: "seen", Do: fakeengine.Crash})
	first[2].Gate = "never"
	script := firstProcess(first...)
	script.Rules = rules()
	s := serve(t, script, threeSlots)
	_, begun, rest := s.open("/v1/chat/completions",
		`{"model":"tinychat","stream":true,"stream_options":{"include_usage":true},"n":3,"seed":1,"messages":[{"role":"user","content":"hi"}]}`, `"finish_reason":"stop"`, 0)
	seen := func(what string) {
		p := make([]byte, 4096)
		for !strings.Contains(begun, what) {
			n, err := rest.Read(p)
			if begun += string(p[:n]); err != nil {
				t.Fatalf("%v: %s", err, begun)
			}
		}
	}
	seen(`"content":" b"`)
	seen(`"content":" d"`)
	s.fake.Wait(t, fakeengine.At("never"))
	s.fake.Release("seen")
	left, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	texts, ends := choicesOf(t, begun+string(left))
	if diff := cmp.Diff(map[int64]string{0: "a b", 1: "c d e", 2: "f g h"}, texts) + cmp.Diff(map[int64]string{0: "stop", 1: "stop", 2: "stop"}, ends); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all := chunks(t, begun+string(left))
	if n := gjson.Get(all[len(all)-2], "usage.completion_tokens").Int(); n != 8 || all[len(all)-1] != "[DONE]" {
		t.Errorf("%s", all[len(all)-2:])
	}
}

// TestOutlive_ThePause: it is kept alive, and told of as ever.
func TestOutlive_ThePause(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"chat", "messages", "responses", "native", "completions"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			script := firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}})
			script.Load.Gate = "load"
			s := serve(t, script, keepAliveSoon)
			tt, sign := outliving[dialect], signOf[dialect]
			if sign == "" {
				sign = endpoint.Comment
			}
			_, begun, rest := s.open(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, "from", 1)
			s.fake.Release("seen")
			s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Gated && ev.Gate == "load" })
			signs := ""
			for p := make([]byte, 512); strings.Count(signs, sign) < 5; {
				n, err := rest.Read(p)
				if signs += string(p[:n]); err != nil {
					t.Fatalf("%v: %s", err, signs)
				}
			}
			s.fake.Release("load")
			left, err := io.ReadAll(rest)
			if all := begun + signs + string(left); err != nil || strings.Contains(all, `"error":{`) || !strings.Contains(string(left), "engine.") {
				t.Errorf("%v: %s", err, all)
			}
		})
	}
}

// TestOutlive_ALoadThatFailsInThePause ends the stream in an error.
func TestOutlive_ALoadThatFailsInThePause(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"chat", "choices", "messages", "responses", "native", "completions"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			script := firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}})
			script.Load.Fail = fakeengine.LoadError("unknown model architecture: 'foobar'")
			s, tt := serve(t, script, threeSlots), outliving[dialect]
			got := s.outlive(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, "from")
			if got.status != 200 || strings.Contains(got.body, "engine.\"") || !strings.Contains(got.body, "foobar") {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// TestOutlive_AClientThatDisconnectsInThePause takes its request along.
func TestOutlive_AClientThatDisconnectsInThePause(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"chat", "choices", "messages", "responses", "native", "completions"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			script := firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}})
			script.Load.Gate = "load"
			s, tt := serve(t, script, threeSlots), outliving[dialect]
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+tt.path, strings.NewReader(`{"model":"tinychat","stream":true,`+tt.body+`}`))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for p, begun := make([]byte, 512), ""; !strings.Contains(begun, "from"); {
				n, err := resp.Body.Read(p)
				if begun += string(p[:n]); err != nil {
					t.Fatalf("%v: %s", err, begun)
				}
			}
			s.fake.Release("seen")
			s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Gated && ev.Gate == "load" })
			asked := s.requests()
			leave()
			s.usedBy("", "lmcaddy/tinychat", 1) // it has ended
			s.fake.Release("load")
			if got := s.says("another", ""); got.status != 200 {
				t.Errorf("another: %d %s", got.status, got.body)
			}
			if n := s.requests(); n != asked+1 {
				t.Errorf("the engines were asked %d times more", n-asked)
			}
		})
	}
}

// TestOutlive_ARoundWithTools: what the model says after a tool's result goes on, and the tool isn't called again.
func TestOutlive_ARoundWithTools(t *testing.T) {
	t.Parallel()
	for name, temperature := range map[string]string{"repeated": "0", "continued": "1"} {
		for _, dialect := range []string{"native", "responses"} {
			t.Run(dialect+", "+name, func(t *testing.T) {
				t.Parallel()
				script := callsThen("It said hi to me.", echo)
				lost := script.Rules[0]
				lost.Contains, lost.Cues = "Echo: hi", []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}
				script.Cases = []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: []fakeengine.Rule{lost, script.Rules[0]}}}}
				tools := serveTools(t)
				var got answer
				if dialect == "native" {
					s := serve(t, script, withMCP)
					got = s.do("POST", "/api/v1/chat", `{"model":"tinychat","stream":true,"input":"Use echo.","temperature":`+temperature+tools.ephemeral("")+`}`)
				} else {
					s := serve(t, script, withRemoteMCP)
					got = s.respond(`"Use echo."`, tools.remoteTools(`,"require_approval":"never"`)+`,"stream":true,"temperature":`+temperature)
				}
				text := ""
				for _, ev := range eventsOf(got.body) {
					switch ev[0] {
					case "message.delta":
						text += gjson.Get(ev[1], "content").Str
					case "response.output_text.delta":
						text += gjson.Get(ev[1], "delta").Str
					}
				}
				if text != "It said hi to me." || tools.calls.Load() != 1 || strings.Contains(got.body, `"code":"engine_failed"`) {
					t.Errorf("%q, %d calls, %s", text, tools.calls.Load(), got.body)
				}
			})
		}
	}
}

// TestOutlive_StopStrings: one that the loss of an engine cuts in two is found.
func TestOutlive_StopStrings(t *testing.T) {
	t.Parallel()
	for way, temperature := range map[string]string{"repeated": "0", "continued": "1"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := serve(t, lostAfter(2, fakeengine.Rule{Answer: fakeengine.Answer{Pieces: []string{"one E", "N", "D two"}}}))
			body := `{"model":"tinychat","stream":true,"stop":["END"],"temperature":` + temperature + `,"messages":[{"role":"user","content":"hi"}]}`
			texts, ends := choicesOf(t, s.outlive("/v1/chat/completions", body, "one ").body)
			if texts[0] != "one " || ends[0] != "stop" {
				t.Errorf("%v %v", texts, ends)
			}
		})
	}
}

// TestOutlive_Limits: those tokens that were generated count.
func TestOutlive_Limits(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"chat", "chat, by events", "responses", "native", "completions", "messages"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			tt := outliving[dialect]
			limit := map[string]string{"responses": "max_output_tokens", "native": "max_output_tokens"}[dialect]
			if limit == "" {
				limit = "max_tokens"
			}
			body := `{"model":"tinychat","stream":true,"temperature":1,"` + limit + `":4,` + strings.Replace(tt.body, `"max_tokens":99,`, "", 1) + `}`
			want := serve(t, nil).do("POST", tt.path, body)
			got := serve(t, lostAfter(2, fakeengine.Rule{})).outlive(tt.path, body, "from")
			if diff := cmp.Diff(essence(want.body), essence(got.body)); diff != "" || !strings.Contains(got.body, "fake") || strings.Contains(got.body, "engine.") {
				t.Errorf("(-undisturbed +lost):\n%s", diff)
			}
		})
	}
}

// TestOutlive_IsCountedOnce: the tokens of an answer that went on are those of the client's.
func TestOutlive_IsCountedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, lostAfter(2, fakeengine.Rule{PromptTokens: 7}))
	if got := s.outlive("/v1/chat/completions", `{"model":"tinychat","stream":true,"temperature":1,"messages":[{"role":"user","content":"hi"}]}`, "from"); got.status != 200 {
		t.Fatal(got.body)
	}
	if used := s.usedBy("", "lmcaddy/tinychat", 1); used.TokensIn != 7 || used.TokensOut != 5 {
		t.Errorf("%+v", used)
	}
}

// TestOutlive_MLX: its answers can only be repeated.
func TestOutlive_MLX(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		more, code string
	}{
		"the likeliest tokens": {"", ""},
		"a seed":               {`,"temperature":1,"seed":3`, ""},
		"random tokens":        {`,"temperature":1`, "engine_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := fakekit.Rule{Answer: fakekit.Answer{Text: "one two three four"}}
			lost := rule
			lost.Times, lost.Cues = 1, []fakekit.Cue{{After: 2, Do: fakekit.Cut}}
			s := serveMLX(t, lost, rule)
			got := s.do("POST", "/v1/chat/completions", `{"model":"`+mlxModel+`","stream":true,"messages":[{"role":"user","content":"hi"}]`+tt.more+`}`)
			all := chunks(t, got.body)
			if tt.code != "" {
				if last := (answer{body: all[len(all)-1]}); last.code() != tt.code {
					t.Errorf("%s", all)
				}
				return
			}
			if texts, ends := choicesOf(t, got.body); texts[0] != "one two three four" || ends[0] != "stop" {
				t.Errorf("%v %v %s", texts, ends, all)
			}
		})
	}
}

// TestOutlive_TheLastToken: an answer that has all the tokens that it may have is whole, although its engine is lost before it says so.
func TestOutlive_TheLastToken(t *testing.T) {
	t.Parallel()
	answers := map[string]fakeengine.Answer{
		"text":     {Pieces: []string{"a", "b", "c", "d", "e", "f"}},
		"thinking": {Reasoning: "I think of it for long", Text: "One two"},
	}
	limits := map[string]string{
		"chat": "max_tokens", "chat, by events": "max_completion_tokens", "chat, begun": "max_tokens", "chat, with tools": "max_tokens", "messages": "max_tokens",
		"responses": "max_output_tokens", "native": "max_output_tokens", "completions": "max_tokens", "probabilities": "max_tokens", "token ids": "max_tokens",
	}
	for dialect, limit := range limits {
		for kind, answer := range answers {
			if kind == "thinking" && !slices.Contains([]string{"chat", "chat, by events", "responses", "native"}, dialect) {
				continue
			}
			t.Run(dialect+", "+kind, func(t *testing.T) {
				t.Parallel()
				rule, tt := fakeengine.Rule{Answer: answer}, outliving[dialect]
				body := `{"model":"tinychat","stream":true,"temperature":1,"` + limit + `":4,` + strings.Replace(tt.body, `"max_tokens":99,`, "", 1) + `}`
				lost := rule
				rule.Times, lost.Cues = 1, []fakeengine.Cue{{After: 4, Do: fakeengine.Crash}}
				s := serve(t, firstProcess(rule, lost), withoutStates)
				want := s.do("POST", tt.path, body)
				got := s.do("POST", tt.path, body)
				if lostAll := essence(got.body) == essence(s.do("POST", tt.path, body).body); lostAll {
					return // on a busy machine the engine may be lost before anything of its answer is read
				}
				if diff := cmp.Diff(essence(want.body), essence(got.body)); diff != "" || want.status != 200 || strings.Count(want.body, "\n\n") < 5 {
					t.Errorf("(-undisturbed +lost):\n%s", diff)
				}
			})
		}
	}
}
