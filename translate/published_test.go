package translate_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is the schemas of what OpenAI and Anthropic publish of their answers: their libraries' types, as strict as they
// are. testdata/published says of which version; e2e/published makes them.
type published map[string]*jsonschema.Schema

// answers are the types' members of Published, by which the tests call them.
var answers = map[string][]string{
	"openai":    {"chat", "chunk", "completion", "embeddings", "model", "models", "error"},
	"anthropic": {"message", "event", "count", "model", "error"},
}

func readPublished(t *testing.T) published {
	t.Helper()
	all := published{}
	for api, names := range answers {
		compiler := jsonschema.NewCompiler()
		for _, name := range names {
			schema, err := compiler.Compile(filepath.Join("testdata", "published", api+".json") + "#/definitions/Published/properties/" + name)
			if err != nil {
				t.Fatal(err)
			}
			all[api+" "+name] = schema
		}
	}
	return all
}

// ours is what our answers have beside what is published: by the name of the schema, and the member that it is in. All of it is
// in docs/api.md.
var ours = map[string]map[string][]string{
	"openai chat":       {"": {"stats", "model_info", "runtime", "drafted", "stop_reason", "tokens"}, "message": {"reasoning", "reasoning_content"}},
	"openai chunk":      {"": {"stats", "model_info", "runtime", "drafted", "stop_reason", "tokens", "error"}, "delta": {"reasoning", "reasoning_content"}},
	"openai completion": {"": {"stats", "model_info", "runtime"}},
	"openai error":      {"": {"stats", "model_info", "runtime"}},
}

// withoutOurs takes from an answer what isn't published.
func withoutOurs(value any, in string, members map[string][]string) any {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range members[in] {
			delete(value, name)
		}
		for name, v := range value {
			withoutOurs(v, name, members)
		}
	case []any:
		for _, v := range value {
			withoutOurs(v, in, members)
		}
	}
	return value
}

// check holds a piece of an answer against a schema.
func (p published) check(t *testing.T, schema string, piece []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(piece))
	if err != nil {
		t.Errorf("%v: %s", err, piece)
		return
	}
	if schema == "openai completion" && bytes.Contains(piece, []byte(`"finish_reason":null`)) {
		// The type has no null, but OpenAI's own streams of this endpoint do, until the last chunk.
		for _, choice := range value.(map[string]any)["choices"].([]any) {
			choice.(map[string]any)["finish_reason"] = "stop"
		}
	}
	if err := p[schema].Validate(withoutOurs(value, "", ours[schema])); err != nil {
		t.Errorf("%s: %s\n%#v", schema, piece, err)
	}
}

// checkStream holds each event of a stream against a schema, an error against that of errors.
func (p published) checkStream(t *testing.T, api, schema string, stream []byte) (checked int) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		checked++
		if bytes.HasPrefix(data, []byte(`{"error":`)) || bytes.HasPrefix(data, []byte(`{"type":"error"`)) {
			p.check(t, api+" error", data)
			continue
		}
		p.check(t, api+" "+schema, data)
	}
	return checked
}

// TestPublished_Transcripts: what clients see of every recorded answer is what is published.
func TestPublished_Transcripts(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	checked := map[string]int{}
	for _, dir := range []string{"llama", "llama-text"} {
		body, chunk := "chat", "chunk"
		if dir == "llama-text" {
			body, chunk = "completion", "completion"
		}
		for _, tr := range transcriptsIn(t, filepath.Join("testdata", dir)) {
			for name, content := range tr.views {
				t.Run(path.Join(dir, tr.name, name), func(t *testing.T) {
					what, _, _ := strings.Cut(strings.TrimPrefix(name, "chat "), " with ")
					switch what {
					case "messages body":
						all.check(t, "anthropic message", content)
						checked["message"]++
					case "messages stream":
						checked["event"] += all.checkStream(t, "anthropic", "event", content)
					case "body":
						all.check(t, "openai "+body, content)
						checked[body]++
					case "stream", "stream of a single call":
						checked[chunk] += all.checkStream(t, "openai", chunk, content)
					}
				})
			}
		}
	}
	for _, what := range []string{"message", "event", "chat", "chunk", "completion"} {
		if checked[what] < 10 {
			t.Errorf("%d pieces of the kind %s", checked[what], what)
		}
	}
}

// masks are what the golden files of package api have for what differs from run to run, where that isn't a string.
var masks = strings.NewReplacer(`:…`, `:1`, `{…}`, `{}`)

// goldenAnswer finds the request's path, and the answer with its status and type, in a golden file of package api.
var goldenAnswer = regexp.MustCompile(`(?s)^(?:GET|POST) (\S+)\n.*\n(\d{3}) (\S+)\n(.*)$`)

// endpoints are the schemas of the endpoints' bodies and chunks. Those that aren't here have no published ones.
var endpoints = []struct{ path, api, body, chunk string }{
	{"/v1/chat/completions", "openai", "chat", "chunk"},
	{"/api/v0/chat/completions", "openai", "chat", "chunk"},
	{"/v1/completions", "openai", "completion", "completion"},
	{"/api/v0/completions", "openai", "completion", "completion"},
	{"/v1/embeddings", "openai", "embeddings", ""},
	{"/api/v0/embeddings", "openai", "embeddings", ""},
	{"/v1/models", "openai", "models", ""},
	{"/v1/models/lmcaddy/tinyembed", "openai", "model", ""},
	{"/v1/messages", "anthropic", "message", "event"},
	{"/v1/messages/count_tokens", "anthropic", "count", ""},
}

// TestPublished_GoldenFiles holds what package api's endpoints answer against what is published.
func TestPublished_GoldenFiles(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	files, err := filepath.Glob("../api/testdata/*.golden")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
			found := goldenAnswer.FindStringSubmatch(string(content))
			if found == nil {
				t.Fatalf("no answer is found in\n%s", content)
			}
			path, status, kind, said := strings.TrimSuffix(found[1], "?beta=true"), found[2], found[3], []byte(masks.Replace(found[4]))
			at := slices.IndexFunc(endpoints, func(e struct{ path, api, body, chunk string }) bool { return e.path == path })
			if at < 0 {
				if strings.HasPrefix(path, "/v1/") && path != "/v1/rerank" {
					t.Errorf("nothing is known of %s", path)
				}
				return
			}
			e := endpoints[at]
			seen[path]++
			isV0 := strings.HasPrefix(path, "/api/v0/") // whose errors are in the native words
			switch {
			case kind == "text/event-stream":
				if isV0 && bytes.Contains(said, []byte(`{"error":`)) {
					said, _, _ = bytes.Cut(said, []byte(`data: {"error":`))
				}
				all.checkStream(t, e.api, e.chunk, said)
			case status != "200":
				if !isV0 {
					all.check(t, e.api+" error", said)
				}
			case bytes.Contains(content, []byte(`"encoding_format":"base64"`)):
				// The type is that of what the library makes of it: numbers.
			default:
				all.check(t, e.api+" "+e.body, said)
			}
		})
	}
	for _, e := range endpoints {
		if seen[e.path] == 0 {
			t.Errorf("no golden file is of %s", e.path)
		}
	}
}

// TestPublished_IsStrict: the schemas find what they are there to find.
func TestPublished_IsStrict(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	const message = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"%s},` +
		`"logprobs":%s,"finish_reason":"stop"}]}`
	const block = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"%s}],"stop_reason":"end_turn"%s,` +
		`"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`
	for name, tt := range map[string]struct {
		schema, piece string
		fits          bool
	}{
		"a message":              {"openai chat", fmt.Sprintf(message, `,"refusal":null`, "null"), true},
		"no refusal":             {"openai chat", fmt.Sprintf(message, "", "null"), false},
		"calls that are null":    {"openai chat", fmt.Sprintf(message, `,"refusal":null,"tool_calls":null`, "null"), false},
		"half of the logprobs":   {"openai chat", fmt.Sprintf(message, `,"refusal":null`, `{"content":[]}`), false},
		"a field of our own":     {"openai chat", fmt.Sprintf(message, `,"refusal":null,"mood":1`, "null"), false},
		"a text":                 {"anthropic message", fmt.Sprintf(block, "", `,"stop_sequence":null`), true},
		"citations of null":      {"anthropic message", fmt.Sprintf(block, `,"citations":null`, `,"stop_sequence":null`), false},
		"no stop sequence":       {"anthropic message", fmt.Sprintf(block, "", ""), false},
		"an unknown event":       {"anthropic event", `{"type":"message_pause"}`, false},
		"an error without param": {"openai error", `{"error":{"message":"a","type":"b","code":null}}`, false},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.piece))
		if err != nil {
			t.Fatal(err)
		}
		if err := all[tt.schema].Validate(value); (err == nil) != tt.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
