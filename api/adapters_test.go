package api

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// headerOf is a GGUF file of nothing but fields: names and values, which are texts or true.
func headerOf(fields ...any) []byte {
	le := binary.LittleEndian
	text := func(dst []byte, text string) []byte { return append(le.AppendUint64(dst, uint64(len(text))), text...) }
	made := le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), 0)
	made = le.AppendUint64(made, uint64(len(fields)/2))
	for i, field := range fields {
		switch field, isText := field.(string); {
		case !isText:
			made = append(le.AppendUint32(made, 7), 1)
		case i%2 == 1:
			made = text(le.AppendUint32(made, 8), field)
		default:
			made = text(made, field)
		}
	}
	return append(made, make([]byte, 64)...)
}

// addAdapter puts an adapter without weights beside the shipped model.
func (s *server) addAdapter(file string) {
	s.t.Helper()
	made := headerOf("general.architecture", "llama", "general.type", "adapter", "adapter.type", "lora")
	path := filepath.Join(s.node.Home().Models(), "lmcaddy", "tinychat", file)
	if err := os.WriteFile(path, made, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// lastSent is what the engine was last asked.
func (s *server) lastSent() (last gjson.Result) {
	for _, ev := range s.fake.Events() {
		if isAsked(ev) && !strings.Contains(ev.Path, "template") {
			last = gjson.Parse(ev.Body)
		}
	}
	return last
}

// TestAdapters_AreChosenByName for each request, in any dialect, by one process.
func TestAdapters_AreChosenByName(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.addAdapter("pirate-lora.gguf")
	s.addAdapter("terse-lora.gguf")
	const message = `"messages":[{"role":"user","content":"Hi"}]`
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"model":"tinychat",` + message + `,"lora":[{"id":1,"scale":9}]}`, ""},
		{"/v1/chat/completions", `{"model":"tinychat+pirate-lora",` + message + `}`, `[{"id":0,"scale":1.0}]`},
		{"/v1/chat/completions", `{"model":"lmcaddy/tinychat+terse-lora.gguf",` + message + `,"lora":[{"id":0,"scale":9}]}`, `[{"id":1,"scale":1.0}]`},
		{"/v1/messages", `{"model":"tinychat+terse-lora","max_tokens":9,` + message + `}`, `[{"id":1,"scale":1.0}]`},
		{"/v1/responses", `{"model":"tinychat+terse-lora","input":"Hi"}`, `[{"id":1,"scale":1.0}]`},
		{"/api/v1/chat", `{"model":"tinychat+terse-lora","input":"Hi"}`, `[{"id":1,"scale":1.0}]`},
		{"/api/chat", `{"model":"tinychat+pirate-lora:latest",` + message + `}`, `[{"id":0,"scale":1.0}]`},
		{"/v1/completions", `{"model":"tinychat+pirate-lora","prompt":"Hi"}`, `[{"id":0,"scale":1.0}]`},
		{"/v1/completions", `{"model":"tinychat","prompt":"Hi"}`, ""},
	} {
		if got := s.do("POST", tt.path, tt.body); got.status != 200 {
			t.Fatalf("%s %s: %d %s", tt.path, tt.body, got.status, got.body)
		}
		if got := s.lastSent(); got.Get("lora").Raw != tt.want {
			t.Errorf("%s %s: %s", tt.path, tt.body, got.Raw)
		}
	}
	starts := 0
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started && slices.Contains(ev.Argv, "--lora-init-without-apply") {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d processes with adapters", starts)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat+nobody",`+message+`}`); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.addAdapter("later-lora.gguf") // which takes another process
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat+later-lora",`+message+`}`); got.status != 200 || s.lastSent().Get("lora").Raw != `[{"id":0,"scale":1.0}]` {
		t.Errorf("%d %s, asked %s", got.status, got.body, s.lastSent().Raw)
	}
}

// TestAdapters_OfTheSettings are for requests that name only the model.
func TestAdapters_OfTheSettings(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Adapter: "terse-lora"}}
	})
	const chat = `,"messages":[{"role":"user","content":"Hi"}]}`
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat"`+chat); got.status != 400 || !strings.Contains(got.body, "terse-lora, which the option lora") {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.addAdapter("pirate-lora.gguf")
	s.addAdapter("terse-lora.gguf")
	for model, want := range map[string]string{"tinychat": "1", "tinychat+pirate-lora": "0"} {
		if got := s.do("POST", "/v1/chat/completions", `{"model":"`+model+`"`+chat); got.status != 200 || s.lastSent().Get("lora.0.id").Raw != want {
			t.Errorf("%s: %d %s, asked %s", model, got.status, got.body, s.lastSent().Raw)
		}
	}
}

// TestAdapters_HaveStatesOfTheirOwn: a prompt that is cached in a slot is not reused with another adapter.
func TestAdapters_HaveStatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.addAdapter("pirate-lora.gguf")
	var slots []string
	for _, model := range []string{"tinychat", "tinychat", "tinychat+pirate-lora", "tinychat+pirate-lora", "tinychat"} {
		s.do("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"`+strings.Repeat("Tell me more. ", 40)+`"}]}`)
		slots = append(slots, s.lastSent().Get("id_slot").Raw)
	}
	if slots[0] == "" || slots[1] != slots[0] || slots[2] == slots[0] || slots[3] != slots[2] || slots[4] != slots[0] {
		t.Errorf("slots %v", slots)
	}
}
