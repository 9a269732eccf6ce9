package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
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
