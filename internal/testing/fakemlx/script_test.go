package fakemlx_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

// scripted starts a fake with rules, and waits until it is ready.
func scripted(t *testing.T, rules ...fakekit.Rule) (*fakemlx.Engine, *process) {
	t.Helper()
	e, p := start(t, &fakemlx.Script{Rules: rules})
	return e, p.ready()
}

var weather = fakekit.Answer{
	Reasoning: "I need weather.", Text: "Checking.",
	Calls: []fakekit.ToolCall{{Name: "get_weather", Arguments: `{"city": "Paris"}`, ID: "one"}, {Name: "get_weather", Arguments: `{"city": "Rome"}`}},
}

func TestAnswer_CallsAreWhole(t *testing.T) {
	t.Parallel()
	_, p := scripted(t, fakekit.Rule{Answer: weather})
	answer := p.post(chats, chat(""))
	if thought, text, end := said(answer, "delta.reasoning"), said(answer, "delta.content"), said(answer, "finish_reason"); thought != "I need weather." ||
		text != "Checking." || end != "tool_calls" {
		t.Errorf("reasoning %q, content %q, finish reason %q", thought, text, end)
	}
	var calls []string
	for _, c := range chunks(answer) {
		if list := c.Get("choices.0.delta.tool_calls"); list.Exists() {
			calls = append(calls, list.Raw)
		}
	}
	want := `[{"function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}, "type": "function", "id": "one", "index": 0}]`
	if len(calls) != 2 || calls[0] != want || !strings.Contains(calls[1], `"index": 1`) {
		t.Errorf("calls\n%s", strings.Join(calls, "\n"))
	}
	whole := p.post(chats, `{`+messages+`}`)
	matches(t, whole, `"message": {"role": "assistant", "content": "Checking.", "reasoning": "I need weather.", "tool_calls": \[{"function": .*}, {"function"`)
}

func TestAnswer_AfterToolsAndWithoutThinking(t *testing.T) {
	t.Parallel()
	_, p := scripted(t, fakekit.Rule{Answer: weather, AfterTools: []fakekit.Answer{{Reasoning: "So.", Text: "It is sunny."}}})
	answer := p.post(chats, `{"stream": true, "chat_template_kwargs": {"enable_thinking": false}, "messages": [{"role": "user", "content": "?"},
		{"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "a", "content": "sun"}]}`)
	if thought, text := said(answer, "delta.reasoning"), said(answer, "delta.content"); thought != "" || text != "It is sunny." {
		t.Errorf("reasoning %q, content %q", thought, text)
	}
}

func TestAnswer_EndsAtItsLimit(t *testing.T) {
	t.Parallel()
	_, p := scripted(t, fakekit.Rule{PromptTokens: 100, CachedTokens: 40, Answer: fakekit.Answer{Text: "one two three four"}})
	answer := p.post(chats, chat(`"max_tokens": 2, `))
	matches(t, answer, `: keepalive 59/60\n\n: keepalive 60/60\n\n`)
	matches(t, answer, `"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102, "prompt_tokens_details": {"cached_tokens": 40}`)
	if text, end := said(answer, "delta.content"), said(answer, "finish_reason"); text != "one two" || end != "length" {
		t.Errorf("content %q, finish reason %q", text, end)
	}
}

// TestAnswer_StopStrings shows that a stop string only ends an answer where its tokens are among the answer's.
func TestAnswer_StopStrings(t *testing.T) {
	t.Parallel()
	_, p := scripted(t, fakekit.Rule{Answer: fakekit.Answer{Text: "one two three"}})
	for stop, want := range map[string]string{`" two"`: "one stop", `["wo"]`: "one t three stop"} {
		answer := p.post(chats, chat(`"stop": `+stop+`, `))
		if got := said(answer, "delta.content") + " " + said(answer, "finish_reason"); got != want {
			t.Errorf("stop %s: %q, want %q", stop, got, want)
		}
	}
}

func TestRules_OneTokenIsNoClientsRequest(t *testing.T) {
	t.Parallel()
	e, p := start(t, &fakemlx.Script{Rules: []fakekit.Rule{
		{Nth: 1, Answer: fakekit.Answer{Text: "first"}},
		{Gate: "never", PromptTokens: 77},
	}})
	p.ready()
	if got := said(p.post(chats, chat("")), "delta.content"); got != "first" {
		t.Errorf("the first client's answer is %q", got)
	}
	matches(t, p.post(chats, chat(`"max_tokens": 1, `)), `"prompt_tokens": 77`)
	p.later(chats, chat(""))
	if gated := e.Wait(t, fakekit.At("never")); gated.N != 2 {
		t.Errorf("the second client's request is number %d", gated.N)
	}
}

func TestRules_StatusAndPath(t *testing.T) {
	t.Parallel()
	_, p := scripted(t, fakekit.Rule{Contains: "How", Status: 404, Body: `{"error": "no"}`}, fakekit.Rule{Path: "/health", Status: 500, Body: "ill"})
	matches(t, p.post(chats, chat("")), missing("no"))
	matches(t, p.get("/health"), `^HTTP/1\.0 500 (?s).*ill$`)
}

func TestCues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		do     fakekit.Action
		fields string
		kind   fakekit.Kind
		ends   bool // the connection does
	}{
		{"a fault ends the thread", fakekit.Fault, "", fakekit.Stuck, false},
		{"a fault ends an answer that is served alone", fakekit.Fault, `"seed": 1, `, fakekit.Finished, true},
		{"the thread hangs", fakekit.Stick, "", fakekit.Stuck, false},
		{"an answer hangs", fakekit.Hang, "", fakekit.Hung, false},
		{"an answer is cut", fakekit.Cut, "", fakekit.Finished, true},
		{"the process dies", fakekit.Crash, "", fakekit.Exit, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, p := scripted(t, fakekit.Rule{Cues: []fakekit.Cue{{After: 2, Gate: "two", Do: tt.do, Message: "ValueError: odd"}}})
			answered := p.later(chats, chat(tt.fields))
			e.Wait(t, fakekit.At("two"))
			e.Release("two")
			n := e.Wait(t, func(ev fakekit.Event) bool { return ev.Kind == fakekit.Gated && ev.Gate == "two" }).N
			e.Wait(t, func(ev fakekit.Event) bool { return ev.Kind == tt.kind && (ev.N == n || ev.Kind == fakekit.Exit) })
			if tt.do == fakekit.Fault {
				p.stderr.until(t, "ValueError: odd")
			}
			if !tt.ends {
				return
			}
			if answer := <-answered; said(answer, "delta.content") != "Hello from" || strings.Contains(answer, "[DONE]") {
				t.Errorf("answered with %q", answer)
			}
		})
	}
}

func TestCancelledStreamIsNoticedAtTheNextWrite(t *testing.T) {
	t.Parallel()
	e, p := scripted(t, fakekit.Rule{Delay: time.Millisecond, Answer: fakekit.Answer{Text: "on and on ", Chunks: 1 << 20}})
	c := (&contract{token: "5"}).long(t, p, `"stream": true, `)
	began(t, c)
	_ = c.Close()
	e.Wait(t, fakekit.Is(fakekit.Cancelled))
	p.stderr.until(t, "Exception occurred during processing of request from ('127.0.0.1', ")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		load fakemlx.Load
		then func(t *testing.T, e *fakemlx.Engine, p *process)
	}{
		{"gate", fakemlx.Load{Gate: "load", Busy: true}, func(t *testing.T, e *fakemlx.Engine, p *process) {
			t.Helper()
			e.Wait(t, fakekit.At("load"))
			matches(t, p.get("/health"), `{"status": "ok"}$`)
			answered := p.later(chats, chat(""))
			e.Wait(t, fakekit.Is(fakekit.Request))
			e.Release("load")
			matches(t, <-answered, "^HTTP/1.0 200 ")
		}},
		{"failure", fakemlx.Load{Fail: "ValueError: Model type foobar not supported."}, func(t *testing.T, e *fakemlx.Engine, p *process) {
			t.Helper()
			p.stderr.until(t, "\nValueError: Model type foobar not supported.\n")
			if stuck := e.Wait(t, fakekit.Is(fakekit.Stuck)); stuck.Reason != "ValueError: Model type foobar not supported." {
				t.Errorf("stuck because of %q", stuck.Reason)
			}
		}},
		{"death", fakemlx.Load{Die: &fakekit.Death{Signal: 6, Lines: []string{"libc++abi: terminating"}}}, func(t *testing.T, e *fakemlx.Engine, p *process) {
			t.Helper()
			e.Wait(t, fakekit.Is(fakekit.Exit))
			<-p.exited
			p.stderr.until(t, "libc++abi: terminating")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, p := start(t, &fakemlx.Script{Load: tt.load})
			tt.then(t, e, p.listening())
		})
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	e, p := start(t, &fakemlx.Script{PortTaken: true})
	p.stderr.until(t, "Address already in use")
	if pid := e.Wait(t, fakekit.Is(fakekit.Ready)).PID; !fakekit.Alive(pid) {
		t.Error("the process has ended")
	}
}

func TestInstall_CommandsBesideTheServer(t *testing.T) {
	t.Parallel()
	e := fakemlx.Install(t, &fakemlx.Script{Version: "0.31.3", HideFlags: []string{"--min-p"}})
	tests := []struct {
		argv []string
		want string
	}{
		{[]string{"mlx_lm", "--version"}, "0.31.3\n"},
		{[]string{"python3", "-m", "mlx_lm", "--version"}, "0.31.3\n"},
		{[]string{"python3", "-m", "mlx_lm", "server", "--help"}, "usage: mlx_lm.server [-h] [--model MODEL] "},
		{[]string{"python3", "-m", "mlx_lm.server", "--help"}, "Calling `python -m mlx_lm.server...` directly is deprecated."},
	}
	for _, tt := range tests {
		out, err := exec.Command(filepath.Join(e.Dir, tt.argv[0]), tt.argv[1:]...).Output()
		if err != nil || !strings.HasPrefix(string(out), tt.want) || strings.Contains(string(out), "--min-p") {
			t.Errorf("%v: %q, %v", tt.argv, out, err)
		}
	}
	p := launch(t, []string{e.Path}, 0, "--min-p", "0.1")
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("a hidden flag ends it with %d", code)
	}
}

func TestStarted_RecordsTheEnvironment(t *testing.T) {
	t.Parallel()
	e, p := scripted(t)
	started := e.Wait(t, fakekit.Of(p.cmd.Process.Pid, fakekit.Started))
	if started.Env["HF_HUB_OFFLINE"] != "1" || !slices.Contains(started.Argv, "--model") || started.Port != p.port {
		t.Errorf("started: %v", started)
	}
}
