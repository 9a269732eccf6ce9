package chat

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
)

const (
	oneModel  = `{"models":[{"key":"p/a","type":"llm","loaded_instances":[]},{"key":"p/vectors","type":"embedding","loaded_instances":[{"id":"p/vectors"}]}]}`
	twoModels = `{"models":[{"key":"p/a","type":"llm","loaded_instances":[]},{"key":"p/b","type":"llm","loaded_instances":[]}]}`
	oneLoaded = `{"models":[{"key":"p/a","type":"llm","loaded_instances":[]},{"key":"p/b","type":"llm","loaded_instances":[{"id":"p/b"}]}]}`
	saysHi    = "data: {\"type\":\"message.delta\",\"content\":\"Hi\"}\n\ndata: {\"type\":\"chat.end\",\"result\":{\"response_id\":\"resp_2\"}}\n\n"
)

// chatOf runs `lmcaddy chat` with a server that answers as a table says, and returns what the chat was asked.
func chatOf(t *testing.T, answers map[string]string, stdin string, arguments ...string) (asked, stdout, stderr string, err error) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := r.Method + " " + r.URL.Path
		answer, ok := answers[request]
		switch {
		case request == "POST /api/v1/chat":
			mu.Lock()
			asked = string(body)
			mu.Unlock()
			if !ok {
				answer = saysHi
			}
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"type":"model_not_found","code":"model_not_found","message":"No such model."}}`
		}
		if strings.HasPrefix(answer, "data:") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	var out, errs strings.Builder
	cmd := new(cobra.Command)
	Define(cmd)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append(arguments, "--host", server.URL))
	err = cmd.ExecuteContext(t.Context())
	mu.Lock()
	defer mu.Unlock()
	return asked, out.String(), errs.String(), err
}

func TestChat_Question(t *testing.T) {
	t.Parallel()
	known := map[string]string{"GET /api/v0/models/p/a": `{}`}
	for name, tt := range map[string]struct {
		stdin     string
		arguments []string
		want      string // the input, or part of an error
	}{
		"a prompt":                  {"", []string{"-p", "Why?"}, `"Why?"`},
		"standard input":            {" Why?\n", nil, `"Why?"`},
		"both, the prompt first":    {"  a\n\tfile\n\n", []string{"-p", "Summarize this."}, `"Summarize this.\n\n  a\n\tfile"`},
		"nothing":                   {" \n", nil, "there is nothing to ask"},
		"too much":                  {strings.Repeat("x", kit.MaxQuestion+1), nil, "16 MB"},
		"two models":                {"", []string{"p/b", "-p", "Why?"}, "one MODEL at a time"},
		"a missing image":           {"", []string{"-p", "Why?", "--image", "/nope.png"}, "there is no file /nope.png"},
		"an image that isn't one":   {"", []string{"-p", "Why?", "--image", "chat_test.go"}, "chat_test.go is not a PNG"},
		"json without a question":   {"", []string{"--json"}, "there is nothing to ask"},
		"an unknown conversation":   {"", []string{"-p", "Why?", "--continue=abcdef"}, "No such model."},
		"a wrong flag of a setting": {"", []string{"-p", "Why?", "--ttl", "x"}, "--ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, out, _, err := chatOf(t, known, tt.stdin, append([]string{"p/a"}, tt.arguments...)...)
			if !strings.HasPrefix(tt.want, `"`) {
				if err == nil || !strings.Contains(err.Error(), tt.want) || asked != "" {
					t.Errorf("%v, asked %s", err, asked)
				}
				return
			}
			if input := gjson.Get(asked, "input").Raw; err != nil || input != tt.want || out != "Hi\n" {
				t.Errorf("%v: asked %s, printed %q", err, asked, out)
			}
			if gjson.Get(asked, "store").Bool() {
				t.Error("a single question is stored")
			}
		})
	}
}

func TestChat_Settings(t *testing.T) {
	t.Parallel()
	image := filepath.Join(t.TempDir(), "a b.png")
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, png, 0o600); err != nil {
		t.Fatal(err)
	}
	asked, _, _, err := chatOf(t, nil, "", "p/a", "-p", "Why?", "-s", "Be brief.", "--temperature", "0", "--reasoning", "off", "-c", "512",
		"--ttl", "2m", "--image", image, "--mcp", "files")
	if err == nil || !strings.Contains(err.Error(), `"lmcaddy get p/a" downloads it`) || asked != "" {
		t.Errorf("of a missing model: %v, %s", err, asked)
	}
	asked, _, _, err = chatOf(t, map[string]string{"GET /api/v0/models/p/a": `{}`}, "", "p/a", "-p", "Why?", "-s", "Be brief.", "--temperature", "0",
		"--reasoning", "off", "-c", "512", "--ttl", "2m", "--image", image, "--mcp", "files")
	var got map[string]any
	if err != nil || json.Unmarshal([]byte(asked), &got) != nil {
		t.Fatalf("%v: %s", err, asked)
	}
	want := map[string]any{
		"model": "p/a", "system_prompt": "Be brief.", "temperature": 0., "reasoning": "off", "context_length": 512., "ttl": 120.,
		"integrations": []any{"mcp/files"}, "store": false, "stream": true,
		"input": []any{
			map[string]any{"type": "image", "data_url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)},
			map[string]any{"type": "message", "content": "Why?"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChat_ModelOfItsOwn(t *testing.T) {
	t.Parallel()
	const models, last, known = "GET /api/v1/models", "GET /api/v1/conversations", "GET /api/v0/models/p/"
	ofB := `{"conversations":[{"id":"resp_1","model":"p/b"}],"next_cursor":null}`
	for name, tt := range map[string]struct {
		answers           map[string]string
		model, note, fail string
	}{
		"the loaded one":              {map[string]string{models: oneLoaded}, "p/b", "p/b: it is loaded", ""},
		"the only one":                {map[string]string{models: oneModel}, "p/a", "p/a: it is the only one", ""},
		"of the last conversation":    {map[string]string{models: twoModels, last: ofB}, "p/b", "the last conversation was with it", ""},
		"of one with a deleted model": {map[string]string{models: twoModels, last: strings.Replace(ofB, "p/b", "p/c", 1)}, "", "", "name one of p/a, p/b"},
		"none":                        {map[string]string{models: `{"models":[]}`}, "", "", "lmcaddy get MODEL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.answers[known+"a"], tt.answers[known+"b"] = "{}", "{}"
			asked, _, notes, err := chatOf(t, tt.answers, "", "-p", "Why?")
			switch {
			case tt.fail != "":
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Error(err)
				}
			case err != nil || gjson.Get(asked, "model").Str != tt.model || !strings.Contains(notes, tt.note):
				t.Errorf("%v: asked %s, %s", err, asked, notes)
			}
		})
	}
}

func TestChat_DownloadsWhatIsMissing(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"POST /api/v1/models/download":             `{"job_id":"job_1","status":"downloading"}`,
		"GET /api/v1/models/download/job_1/events": `data: {"job":{"status":"completed","total_size_bytes":1000000}}` + "\n\n",
	}
	asked, out, _, err := chatOf(t, answers, "", "p/a", "-p", "Why?", "--yes")
	if err != nil || gjson.Get(asked, "model").Str != "p/a" || out != "Hi\n" {
		t.Errorf("%v: asked %s, %s", err, asked, out)
	}
	answers["POST /api/v1/models/download"] = `!{"error":{"type":"model_not_found","message":"Not at the hub."}}`
	if _, _, _, err := chatOf(t, answers, "", "a", "-p", "Why?", "--yes"); err == nil || !strings.Contains(err.Error(), "No such model") {
		t.Errorf("of a name that the hub can't have: %v", err)
	}
}

func TestChat_Continue(t *testing.T) {
	t.Parallel()
	found := storedConversation + "}"
	answers := map[string]string{
		"GET /api/v1/conversations":                     `{"conversations":[` + found + `],"next_cursor":null}`,
		"GET /api/v1/conversations/3f9a1c":              found,
		"GET /api/v1/conversations/" + storedID(t):      found,
		"GET /api/v1/conversations/resp_3f9a1c22":       found,
		"GET /api/v1/conversations/777777":              strings.Replace(found, `"native"`, `"responses"`, 1),
		"GET /api/v0/models/p/m":                        "{}",
		"GET /api/v0/models/p/other":                    "{}",
		"GET /api/v1/conversations/0123456789abcdef012": `{"error":{"message":"x"}}`,
	}
	for name, tt := range map[string]struct {
		arguments   []string
		model, fail string
	}{
		"the last one":         {[]string{"--continue"}, "p/m", ""},
		"one of them":          {[]string{"--continue", "3f9a1c"}, "p/m", ""},
		"with a prefix":        {[]string{"--continue=resp_3f9a1c22"}, "p/m", ""},
		"with another model":   {[]string{"--continue", "3f9a1c", "p/other"}, "p/other", ""},
		"the model, then it":   {[]string{"p/other", "--continue=3f9a1c"}, "p/other", ""},
		"the last, with model": {[]string{"--continue", "p/other"}, "p/other", ""},
		"of another API":       {[]string{"--continue", "777777"}, "", "another API"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, _, _, err := chatOf(t, answers, "", append(tt.arguments, "-p", "And?")...)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Error(err)
				}
				return
			}
			if err != nil || gjson.Get(asked, "model").Str != tt.model || gjson.Get(asked, "previous_response_id").Str != "resp_77" || !gjson.Get(asked, "store").Bool() {
				t.Errorf("%v: asked %s", err, asked)
			}
		})
	}
}

func storedID(t *testing.T) string {
	t.Helper()
	return gjson.Get(storedConversation+"}", "id").Str
}

func TestChat_JSON(t *testing.T) {
	t.Parallel()
	asked, out, _, err := chatOf(t, map[string]string{"GET /api/v0/models/p/a": "{}", "POST /api/v1/chat": `{"output":[{"type":"message","content":"Hi"}]}`},
		"", "p/a", "-p", "Why?", "--json")
	if err != nil || gjson.Get(out, "output.0.content").Str != "Hi" || !strings.Contains(out, "\n  ") || gjson.Get(asked, "stream").Bool() {
		t.Errorf("%v: asked %s, printed %s", err, asked, out)
	}
}

func TestUnknownSlash(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/quit": "/bye", "/SYSTEM": "/set", "/hel": "/help", "/sets": "/set", "/s": "/set or /save", "/modl": "/model", "/mdoel": "/model", "/etc/passwd": "a space before it", "/": "/help lists",
	} {
		if got := unknownSlash(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPathIn(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{" a.png ": "a.png", `'a b.png' `: "a b.png", `"a.png"`: "a.png", `a\ b.png`: "a b.png", `C:\a.png`: `C:\a.png`, `'`: `'`} {
		if got := pathIn(typed); got != want {
			t.Errorf("%q: %q", typed, got)
		}
	}
}
