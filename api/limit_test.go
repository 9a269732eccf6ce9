package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestPrompt_ThatCanNeverFitIsRefusedBeforeALoad(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{})
	long := strings.Repeat("hello ", 50_000)
	for name, tt := range map[string]struct{ path, body, param string }{
		"chat":       {"/v1/chat/completions", `"messages":[{"role":"user","content":"` + long + `"}]`, "messages"},
		"v0 chat":    {"/api/v0/chat/completions", `"messages":[{"role":"user","content":[{"type":"text","text":"` + long + `"}]}]`, "messages"},
		"messages":   {"/v1/messages", `"max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}]`, ""},
		"native":     {"/api/v1/chat", `"input":"` + long + `"`, "input"},
		"completion": {"/v1/completions", `"prompt":["a","` + long + `"]`, "prompt"},
	} {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+" "+stream, func(t *testing.T) {
				got := s.do("POST", tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`)
				if got.status != 400 || !strings.Contains(got.body, " tokens") || !strings.Contains(got.body, "8192") {
					t.Errorf("%d %s", got.status, got.body)
				}
				if param := gjson.Get(got.body, "error.param").Str; param != tt.param {
					t.Errorf("the error is about %q, want %q", param, tt.param)
				}
			})
		}
	}
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started {
			t.Error("a model was loaded")
		}
	}
}

// TestPrompt_ThatMayFitIsAsked: what a template may leave out counts for nothing, and an instance named counts alone.
func TestPrompt_ThatMayFitIsAsked(t *testing.T) {
	t.Parallel()
	s := withTwo(t, 8192, 256)
	spaces := strings.Repeat(" ", 300_000)
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"system","content":"`+strings.Repeat("x", 300_000)+`"},{"role":"user","content":"a`+spaces+`"}]}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	long := `","messages":[{"role":"user","content":"` + strings.Repeat("x", 131_050) + `"}]}`
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat`+long); got.status != 200 {
		t.Errorf("by its key: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat:2`+long); got.status != 400 || !strings.Contains(got.body, "at least") || !strings.Contains(got.body, "256") {
		t.Errorf("by its number: %d %s", got.status, got.body)
	}
}
