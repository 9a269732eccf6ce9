package api

import (
	"bytes"
	"io"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
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

// TestAudio_ThatTheEngineFindsDamaged is told of as a recording, and images as images, though the engine has the same words for both.
func TestAudio_ThatTheEngineFindsDamaged(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Status: 400, Body: `{"error":{"code":400,"message":"Failed to load image or audio file","type":"invalid_request_error"}}`,
	}}})
	s.addHearing()
	eyes := filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyeyes")
	link(t, shipped, filepath.Join(eyes, "tinyeyes-f16.gguf"))
	link(t, "../testdata/models/lmcaddy/tinyvision/mmproj-tinyvision-f16.gguf", filepath.Join(eyes, "mmproj-tinyeyes-f16.gguf"))
	sound := `{"type":"input_audio","input_audio":{"data":"` + testkit.Sound + `","format":"wav"}}`
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + testkit.Pixel + `"}}`
	for model, part := range map[string]string{"tinyears": sound, "tinyeyes": image} {
		want := map[string]string{sound: "invalid_audio", image: "invalid_image"}[part]
		got := s.do("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":[{"type":"text","text":"Say \"input_audio\":{\"data\":\""},`+part+`]}]}`)
		if code := gjson.Get(got.body, "error.code").Str; got.status != 400 || code != want {
			t.Errorf("%s: %d %s, want %s", model, got.status, got.body, want)
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

// transcribe sends a form to /v1/audio/transcriptions: names and values, where the value of file is its content.
func (s *server) transcribe(fields ...string) answer {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field := range slices.Chunk(fields, 2) {
		var part io.Writer
		var err error
		if field[0] == "file" {
			part, err = form.CreateFormFile("file", "a.wav")
		} else {
			part, err = form.CreateFormField(field[0])
		}
		if err == nil {
			_, err = io.WriteString(part, field[1])
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		s.t.Fatal(err)
	}
	return s.do("POST", "/v1/audio/transcriptions", body.String(), "Content-Type", form.FormDataContentType())
}

// TestTranscriptions: the model is asked in a chat, and its answer told in each form that needs no times.
func TestTranscriptions(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 100, Answer: fakeengine.Answer{Text: " One two."}}}})
	s.addHearing()
	sound := string(testkit.WAV(8000))
	const plain, usage = "Transcribe audio to text", `"usage":{"type":"tokens","input_tokens":100,"output_tokens":2,"total_tokens":102}}`
	for name, tt := range map[string]struct {
		fields                    []string
		want, contentType, prompt string
	}{
		"json":  {nil, `{"text":"One two.",` + usage, endpoint.TypeJSON, plain},
		"named": {[]string{"response_format", "json", "unknown", "7", "include[]", "logprobs", "prompt", "", "stream", "False", "temperature", ""}, `{"text":"One two.",` + usage, endpoint.TypeJSON, plain},
		"text":  {[]string{"response_format", "text", "language", "de"}, "One two.\n", endpoint.TypeText, plain + " (language: de)"},
		"verbose": {
			[]string{"response_format", "verbose_json", "language", "en", "prompt", "Names:", "temperature", "0.5"},
			`{"task":"transcribe","language":"en","duration":0.5,"text":"One two."}`, endpoint.TypeJSON, "Names: (language: en)",
		},
		"stream": {
			[]string{"stream", "true"},
			`data: {"type":"transcript.text.delta","delta":" One"}` + "\n\n" + `data: {"type":"transcript.text.delta","delta":" two."}` + "\n\n" +
				`data: {"type":"transcript.text.done","text":"One two.",` + usage + "\n\ndata: [DONE]\n\n", endpoint.TypeEvents, plain,
		},
	} {
		got := s.transcribe(append(tt.fields, "model", "tinyears", "file", sound)...)
		if got.status != 200 || got.body != tt.want || got.header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s: %d %s %s", name, got.status, got.header.Get("Content-Type"), got.body)
		}
		sent := s.lastSent()
		if parts := sent.Get("messages.0.content"); parts.Get("0.text").Str != tt.prompt || parts.Get("1.input_audio.format").Str != "wav" || sent.Get("messages.#").Int() != 1 {
			t.Errorf("%s: sent %s", name, sent)
		}
		if sent.Get("file").Exists() || sent.Get("language").Exists() || (name == "verbose") != (sent.Get("temperature").Num == 0.5) {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
	if used := s.usedBy("", "lmcaddy/tinyears", 5); used.TokensIn != 500 || used.TokensOut != 10 {
		t.Errorf("used: %+v", used)
	}
}

// TestTranscriptions_Refused before the engine is asked, with the field.
func TestTranscriptions_Refused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.MaxBody = 100_000 })
	s.addHearing()
	sound := string(testkit.WAV(8))
	for name, tt := range map[string]struct {
		fields            []string
		status            int
		code, param, says string
	}{
		"no file":           {[]string{"model", "tinyears"}, 400, "missing_required_parameter", "file", "is required"},
		"an empty file":     {[]string{"model", "tinyears", "file", ""}, 400, "invalid_audio", "file", "holds a recording that is not a WAV, MP3 or FLAC file."},
		"an image":          {[]string{"model", "tinyears", "file", "\x89PNG\r\n\x1a\n1234567890"}, 400, "invalid_audio", "file", "is not a WAV"},
		"two files":         {[]string{"model", "tinyears", "file", sound, "file", sound}, 400, "missing_required_parameter", "file", "once"},
		"no model":          {[]string{"file", sound}, 400, "missing_required_parameter", "model", "is required"},
		"an empty model":    {[]string{"model", "", "file", sound}, 400, "missing_required_parameter", "model", "is required"},
		"two models":        {[]string{"model", "tinyears", "model", "tinychat", "file", sound}, 400, "duplicate_field", "model", "twice"},
		"no such model":     {[]string{"model", "whisper-1", "file", sound}, 404, "model_not_found", "model", "whisper-1"},
		"a deaf model":      {[]string{"model", "tinychat", "file", sound}, 400, "unsupported_model", "model", "takes no audio: choose a model with a projector for audio"},
		"subtitles":         {[]string{"model", "tinyears", "file", sound, "response_format", "srt"}, 400, "unsupported_value", "response_format", "tells no times"},
		"web subtitles":     {[]string{"model", "tinyears", "file", sound, "response_format", "vtt"}, 400, "unsupported_value", "response_format", "tells no times"},
		"no such format":    {[]string{"model", "tinyears", "file", sound, "response_format", "null"}, 400, "unsupported_value", "response_format", "null"},
		"times":             {[]string{"model", "tinyears", "file", sound, "timestamp_granularities[]", "word", "timestamp_granularities[]", "segment"}, 400, "unsupported_value", "timestamp_granularities", "leave it out"},
		"a warm word":       {[]string{"model", "tinyears", "file", sound, "temperature", "warm"}, 400, "invalid_type", "temperature", "number"},
		"too warm":          {[]string{"model", "tinyears", "file", sound, "temperature", "1000"}, 400, "invalid_value", "temperature", "100"},
		"a stream of words": {[]string{"model", "tinyears", "file", sound, "stream", "perhaps"}, 400, "invalid_type", "stream", "boolean"},
		"a long body":       {[]string{"model", "tinyears", "file", string(testkit.WAV(50_000))}, 413, "", "", "larger than 100000 bytes"},
	} {
		got := s.transcribe(tt.fields...)
		if got.status != tt.status || tt.code != "" && got.code() != tt.code || gjson.Get(got.body, "error.param").Str != tt.param || !strings.Contains(got.body, tt.says) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for contentType, body := range map[string]string{
		"application/json": `{"model":"tinyears","file":"` + testkit.Sound + `"}`, "multipart/form-data": "", "": "",
		"multipart/form-data; boundary=x": "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ntinyears",
		"multipart/mixed; boundary=x":     "--x--\r\n",
	} {
		if got := s.do("POST", "/v1/audio/transcriptions", body, "Content-Type", contentType); got.status != 400 || got.code() != "invalid_form" {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
	if got := s.do("POST", "/v1/audio/translations", ""); got.status != 404 {
		t.Errorf("translations: %d %s", got.status, got.body)
	}
	if sent := s.sent(); len(sent) > 0 {
		t.Errorf("sent: %v", sent)
	}
}

// TestTranscriptions_NamesNoModel where there is only one that it can mean, and needs the right of a chat.
func TestTranscriptions_NamesNoModel(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.AnyName = true })
	s.addHearing()
	if got := s.transcribe("model", "whisper-1", "file", string(testkit.WAV(8))); got.status != 200 || !strings.Contains(got.body, healthy) {
		t.Errorf("%d %s", got.status, got.body)
	}
}
