package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

func withPresets(_ *endpoint.Config, settings *node.Settings) {
	settings.Presets = map[string]node.Preset{
		"careful": {"temperature": json.RawMessage("0.2"), "stop": json.RawMessage(`["END"]`), "system_prompt": json.RawMessage(`"Be brief."`)},
		"bold":    {"temperature": json.RawMessage("1.5"), "model": json.RawMessage(`"tinychat"`)},
	}
}

func TestPreset_GivesWhatTheRequestDoesNot(t *testing.T) {
	t.Parallel()
	const asked = `,"stream":true,"return_progress":true,"stream_options":{"include_usage":true},"timings_per_token":true,"id_slot":0}`
	for name, tt := range map[string]struct{ body, want string }{
		"all of it": {
			`{"model":"tinychat","preset":"careful","messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}],"temperature":0.2` + asked,
		},
		"but what is its own": {
			`{"model":"tinychat","preset":"careful","temperature":0,"stop":null,"messages":[{"role":"system","content":"Speak."},{"role":"user","content":"hi"}]}`,
			`{"temperature":0,"messages":[{"role":"system","content":"Speak."},{"role":"user","content":"hi"}]` + asked,
		},
		"a model": {
			`{"preset":"bold","messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}],"temperature":1.5` + asked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, withPresets)
			if got := s.do("POST", "/v1/chat/completions", tt.body); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if diff := cmp.Diff(tt.want, s.fake.Wait(t, isAsked).Body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPreset_OfAModel: a model's preset is that of all requests in every API that name none.
func TestPreset_OfAModel(t *testing.T) {
	t.Parallel()
	careful := func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"tinychat": {Preset: "careful", Aliases: []string{"calm"}}}
	}
	for name, tt := range map[string]struct{ path, body, temperature, system string }{
		"OpenAI":         {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, "0.2", "Be brief."},
		"by an alias":    {"/v1/chat/completions", `{"model":"calm","messages":[{"role":"user","content":"hi"}]}`, "0.2", "Be brief."},
		"Anthropic":      {"/v1/messages", `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "0.2", "Be brief."},
		"Ollama":         {"/api/chat", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, "0.2", "Be brief."},
		"native":         {"/api/v1/chat", `{"model":"tinychat","input":"hi"}`, "0.2", "Be brief."},
		"another preset": {"/v1/chat/completions", `{"model":"tinychat","preset":"bold","messages":[{"role":"user","content":"hi"}]}`, "1.5", ""},
		"its own":        {"/v1/chat/completions", `{"model":"tinychat","temperature":1,"messages":[{"role":"system","content":"Speak."},{"role":"user","content":"hi"}]}`, "1", "Speak."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, withPresets, careful)
			if got := s.do("POST", tt.path, tt.body); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			asked := s.fake.Wait(t, isAsked).Body
			system := gjson.Get(asked, `messages.#(role=="system").content`).String()
			if got := gjson.Get(asked, "temperature").Raw; got != tt.temperature || system != tt.system {
				t.Errorf("temperature %s, system %q: %s", got, system, asked)
			}
		})
	}
}

func TestPreset_AnUnknownOneIsRefused(t *testing.T) {
	t.Parallel()
	for want, options := range map[string][]option{
		`There is no preset \"rash\". There are: bold, careful.`: {withPresets},
		`There is no preset \"rash\": none is configured.`:       nil,
	} {
		s := serve(t, nil, options...)
		got := s.chat(`,"preset":"rash"`)
		if got.status != 400 || got.code() != "unknown_preset" || !strings.Contains(got.body, want) || !strings.Contains(got.body, `"param":"preset"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		if s.requests() > 0 {
			t.Error("the engine was asked")
		}
	}
}
