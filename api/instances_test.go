package api

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// withTwo returns a server whose model has two instances, with the given context lengths in tokens.
func withTwo(t *testing.T, first, second int, rules ...fakeengine.Rule) *server {
	t.Helper()
	s := serve(t, &fakeengine.Script{Rules: rules})
	for i, context := range []int{first, second} {
		got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat","context_length":`+strconv.Itoa(context)+`}`)
		if want := []string{"lmcaddy/tinychat", "lmcaddy/tinychat:2"}[i]; gjson.Get(got.body, "instance_id").Str != want {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	return s
}

// asks are requests of each dialect for a model, and where their answers name the instance.
var dialectAsks = map[string]struct{ path, body, instance string }{
	"chat":       {"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"}]`, "model"},
	"choices":    {"/v1/chat/completions", `"n":3,"messages":[{"role":"user","content":"hi"}]`, "model"},
	"v0 chat":    {"/api/v0/chat/completions", `"messages":[{"role":"user","content":"hi"}]`, "model"},
	"messages":   {"/v1/messages", `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]`, "model"},
	"native":     {"/api/v1/chat", `"input":"hi"`, "model_instance_id"},
	"ollama":     {"/api/chat", `"messages":[{"role":"user","content":"hi"}]`, ""}, // it says the name that was asked for
	"completion": {"/v1/completions", `"prompt":"hi"`, "model"},
	"prompts":    {"/v1/completions", `"prompt":["hi","there"]`, "model"},
}

func TestInstances_APromptThatIsTooLongForOneGoesToALongerOne(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 256, 1024, fakeengine.Rule{PromptTokens: 600})
	for name, tt := range dialectAsks {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+" "+stream, func(t *testing.T) {
				got := s.do("POST", tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`)
				if got.status != 200 || tt.instance != "" && !strings.Contains(got.body, `"`+tt.instance+`":"lmcaddy/tinychat:2"`) || strings.Contains(got.body, `"error"`) {
					t.Errorf("%d %s", got.status, got.body)
				}
				got = s.do("POST", tt.path, `{"model":"tinychat:1","stream":`+stream+`,`+tt.body+`}`)
				if got.status != 400 || !strings.Contains(got.body, "600") || !strings.Contains(got.body, "256") {
					t.Errorf("the short one by its number: %d %s", got.status, got.body)
				}
			})
		}
	}
}

func TestInstances_APromptThatIsTooLongForAllIsRefusedByTheLongest(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 256, 512, fakeengine.Rule{PromptTokens: 600})
	if got := s.chat(""); got.status != 400 || got.code() != "context_length_exceeded" || !strings.Contains(got.body, "512") {
		t.Errorf("%d %s", got.status, got.body)
	}
	asked := 0
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Request {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("the engines were asked %d times, want each once", asked)
	}
}

// A prompt that surely fits only the longer instance isn't tried on the shorter one.
func TestInstances_ALongPromptIsNotTriedOnAShortOne(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 256, 1024)
	long := strings.Repeat("x", 300)
	for name, tt := range dialectAsks {
		t.Run(name, func(t *testing.T) {
			got := s.do("POST", tt.path, `{"model":"tinychat",`+strings.ReplaceAll(tt.body, "hi", long)+`}`)
			if got.status != 200 || tt.instance != "" && gjson.Get(got.body, tt.instance).Str != "lmcaddy/tinychat:2" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	first := s.node.Instances()[0].PID
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Request && ev.PID == first {
			t.Errorf("the short one was asked %s", ev.Body)
		}
	}
}

func TestInstances_TheLeastBusy(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 256, 1024, fakeengine.Rule{Contains: "wait", Gate: "go"})
	waiting := make(chan answer, 1)
	go func() {
		waiting <- s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"wait"}]}`)
	}()
	s.fake.Wait(t, fakeengine.At("go"))
	if got := s.chat(""); gjson.Get(got.body, "model").Str != "lmcaddy/tinychat:2" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat:1","messages":[{"role":"user","content":"hi"}]}`); gjson.Get(got.body, "model").Str != "lmcaddy/tinychat" {
		t.Errorf("the busy one by its number: %d %s", got.status, got.body)
	}
	s.fake.Release("go")
	if got := <-waiting; gjson.Get(got.body, "model").Str != "lmcaddy/tinychat" {
		t.Errorf("the first: %d %s", got.status, got.body)
	}
}

func TestInstances_ByTheirNumbers(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 256, 1024)
	for name, want := range map[string]string{
		"lmcaddy/tinychat:1": "lmcaddy/tinychat", "LMCADDY/Tinychat:1": "lmcaddy/tinychat", "tinychat:1": "lmcaddy/tinychat",
		"lmcaddy/tinychat:2": "lmcaddy/tinychat:2", "tinychat:2": "lmcaddy/tinychat:2",
		"tinychat:3": "", "tinychat:0": "", "tinychat:01": "", "tinychat:-1": "", "tinychat:": "", "tinychat:x": "", "nobody:1": "", ":1": "",
	} {
		got := s.do("POST", "/v1/chat/completions", `{"model":"`+name+`","messages":[{"role":"user","content":"hi"}]}`)
		if want == "" {
			if got.status != 404 || got.code() != "model_not_found" {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		} else if gjson.Get(got.body, "model").Str != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"tinychat:1"}`); got.body != `{"instance_id":"lmcaddy/tinychat"}` {
		t.Errorf("unloading the first: %d %s", got.status, got.body)
	}
	if got := s.chat(""); gjson.Get(got.body, "model").Str != "lmcaddy/tinychat:2" {
		t.Errorf("any is the second: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat:1","messages":[{"role":"user","content":"hi"}]}`); got.status != 404 {
		t.Errorf("the first is gone: %d %s", got.status, got.body)
	}
}
