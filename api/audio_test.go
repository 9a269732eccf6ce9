package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// addHearing adds a model with a projector for audio.
func (s *server) addHearing() {
	s.t.Helper()
	folder := filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyears")
	link(s.t, shipped, filepath.Join(folder, "tinyears-f16.gguf"))
	projector := headerOf("general.architecture", "clip", "clip.projector_type", "ultravox", "clip.has_audio_encoder", true)
	if err := os.WriteFile(filepath.Join(folder, "mmproj-tinyears-f16.gguf"), projector, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// TestAudio_IsACapability of models with a projector for it, wherever capabilities are told.
func TestAudio_IsACapability(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.addHearing()
	for _, tt := range []struct{ method, path, body, at, with, without string }{
		{"GET", "/api/v1/models", "", `models.#(key=="lmcaddy/MODEL").capabilities.audio`, "true", ""},
		{"GET", "/api/v1/models/MODEL", "", "capabilities.audio", "true", ""},
		{"GET", "/api/v0/models", "", `data.#(id=="lmcaddy/MODEL").capabilities`, `["tool_use","audio"]`, `["tool_use"]`},
		{"POST", "/api/show", `{"model":"MODEL"}`, "capabilities.1", `"audio"`, `"tools"`},
		{"GET", "/api/tags", "", `models.#(name=="lmcaddy/MODEL:latest").capabilities.1`, `"audio"`, `"tools"`},
		{"GET", "/props?model=MODEL", "", "modalities", `{"vision":false,"audio":true}`, `{"vision":false,"audio":false}`},
	} {
		for model, want := range map[string]string{"tinyears": tt.with, "tinychat": tt.without} {
			in := strings.NewReplacer("MODEL", model)
			got := s.do(tt.method, in.Replace(tt.path), in.Replace(tt.body))
			if found := gjson.Get(got.body, in.Replace(tt.at)).Raw; got.status != 200 || found != want {
				t.Errorf("%s of %s: %d, %s, want %s in %s", tt.path, model, got.status, found, want, got.body)
			}
		}
	}
}

// TestAudio_ForAModelThatTakesIt is passed on, kept with the conversation, and needs such a model later, too.
func TestAudio_ForAModelThatTakesIt(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.addHearing()
	part := `{"type":"input_audio","input_audio":{"data":"` + testkit.Sound + `","format":"wav"}}`
	dataURL := `{"type":"audio","data_url":"data:audio/wav;base64,` + testkit.Sound + `"}`
	for _, tt := range []struct{ path, body, id string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"text","text":"Say:"},` + part + `]}]`, ""},
		{"/api/chat", `"stream":false,"messages":[{"role":"user","content":"Say:","images":["` + testkit.Sound + `"]}]`, ""},
		{"/v1/responses", `"input":[{"role":"user","content":[{"type":"input_text","text":"Say:"},` + part + `]}]`, "id"},
		{"/api/v1/chat", `"input":[{"type":"text","content":"Say:"},` + dataURL + `]`, "response_id"},
	} {
		got := s.do("POST", tt.path, `{"model":"tinyears",`+tt.body+`}`)
		if sent := s.lastSent().Get("messages.0.content.1").Raw; got.status != 200 || sent != part {
			t.Fatalf("%s: %d %s, sent %s", tt.path, got.status, got.body, sent)
		}
		if tt.id == "" {
			continue
		}
		goOn := `"input":"Again","previous_response_id":"` + gjson.Get(got.body, tt.id).Str + `"}`
		if got := s.do("POST", tt.path, `{"model":"tinyears",`+goOn); got.status != 200 || s.lastSent().Get("messages.0.content.1").Raw != part {
			t.Errorf("%s, continued: %d %s", tt.path, got.status, got.body)
		}
		if got := s.do("POST", tt.path, `{"model":"tinychat",`+goOn); got.status != 400 || got.code() != "unsupported_content" || !strings.Contains(got.body, "has recordings") {
			t.Errorf("%s, continued by another: %d %s", tt.path, got.status, got.body)
		}
		stored := "/v1/responses/" + gjson.Get(got.body, tt.id).Str + "/input_items"
		at, want := "data.0.content.1", part
		if tt.id == "response_id" {
			stored, at, want = "/api/v1/responses/"+gjson.Get(got.body, tt.id).Str, "input.1", dataURL
		}
		if kept := gjson.Get(s.do("GET", stored, "").body, at).Raw; kept != want {
			t.Errorf("%s, stored: %s", tt.path, kept)
		}
	}
}
