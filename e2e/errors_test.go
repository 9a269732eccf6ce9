package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// wantOpenAIError checks the envelope of the OpenAI-style endpoints: all four keys, always.
func wantOpenAIError(t *testing.T, r harness.Reply, kind, code string) {
	t.Helper()
	for _, key := range []string{"message", "type", "param", "code"} {
		if !r.Get("error." + key).Exists() {
			t.Errorf("the error has no %q: %s", key, r.Body)
		}
	}
	if e := r.Get("error"); e.Get("message").Str == "" || e.Get("type").Str != kind || e.Get("code").Str != code {
		t.Errorf("want type %q and code %q: %s", kind, code, r.Body)
	}
	wantJSON(t, r)
}

// wantNativeError checks the envelope of the native endpoints.
func wantNativeError(t *testing.T, r harness.Reply, kind string) {
	t.Helper()
	if e := r.Get("error"); e.Get("message").Str == "" || e.Get("type").Str != kind {
		t.Errorf("want type %q: %s", kind, r.Body)
	}
	wantJSON(t, r)
}

func wantJSON(t *testing.T, r harness.Reply) {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); kind != "application/json; charset=utf-8" || !gjson.Valid(r.Body) {
		t.Errorf("not JSON: type %q: %s", kind, r.Body)
	}
}

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestErrors_OfAChatRequestSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for name, c := range map[string]struct {
		body    string
		status  int
		code    string
		param   string
		message string // what it contains
	}{
		"unknown model":      {`{"model":"nobody/nothing",` + hello + `}`, 404, "model_not_found", "model", harness.Model},
		"not JSON":           {`Hello`, 400, "invalid_json", "", "JSON"},
		"broken JSON":        {`{"model":"` + harness.Model + `",` + hello, 400, "invalid_json", "", ""},
		"text after JSON":    {`{"model":"` + harness.Model + `",` + hello + `} and more`, 400, "invalid_json", "", ""},
		"empty":              {``, 400, "invalid_json", "", "empty"},
		"array":              {`[{"model":"` + harness.Model + `"}]`, 400, "invalid_json", "", "object"},
		"messages a string":  {`{"model":"` + harness.Model + `","messages":"Hello"}`, 400, "invalid_type", "messages", "array"},
		"messages an object": {`{"model":"` + harness.Model + `","messages":{}}`, 400, "invalid_type", "messages", "array"},
		"no model":           {`{` + hello + `}`, 400, "missing_required_parameter", "model", "model"},
		"model null":         {`{"model":null,` + hello + `}`, 400, "missing_required_parameter", "model", "model"},
		"model a number":     {`{"model":5,` + hello + `}`, 400, "invalid_type", "model", "string"},
		"no messages":        {`{"model":"` + harness.Model + `"}`, 400, "missing_required_parameter", "messages", "messages"},
		"model twice":        {`{"model":"a","model":"` + harness.Model + `",` + hello + `}`, 400, "duplicate_field", "model", "twice"},
		"stream a string":    {`{"model":"` + harness.Model + `","stream":"yes",` + hello + `}`, 400, "invalid_type", "stream", "boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.In(t).Post(harness.ChatPath, c.body).Want(t, c.status)
			wantOpenAIError(t, reply, "invalid_request_error", c.code)
			e := reply.Get("error")
			if e.Get("param").Str != c.param || !strings.Contains(e.Get("message").Str, c.message) {
				t.Errorf("want param %q, and a message with %q: %s", c.param, c.message, reply.Body)
			}
		})
	}
	if engines := s.Engines(); len(engines) > 0 {
		t.Errorf("a request that is wrong has started %v", engines)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after all of them: %q", a.Content)
	}
}

func TestErrors_OfARouteAreInItsDialect(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for name, c := range map[string]struct {
		method, path string
		status       int
		allow        []string
		check        func(*testing.T, harness.Reply)
	}{
		"unknown OpenAI-style path": {"GET", "/v1/nothing", 404, nil, func(t *testing.T, r harness.Reply) {
			wantOpenAIError(t, r, "invalid_request_error", "unknown_endpoint")
		}},
		"unknown native path": {"POST", "/api/v1/nothing", 404, nil, func(t *testing.T, r harness.Reply) {
			wantNativeError(t, r, "invalid_request")
		}},
		"no version at all": {"GET", "/api/", 404, nil, func(t *testing.T, r harness.Reply) {
			wantNativeError(t, r, "invalid_request")
		}},
		"GET of chat": {"GET", harness.ChatPath, 405, []string{"POST"}, func(t *testing.T, r harness.Reply) {
			wantOpenAIError(t, r, "invalid_request_error", "method_not_allowed")
		}},
		"POST of the models": {"POST", "/v1/models", 405, []string{"GET", "HEAD"}, func(t *testing.T, r harness.Reply) {
			wantOpenAIError(t, r, "invalid_request_error", "method_not_allowed")
		}},
		"GET of load": {"GET", harness.LoadPath, 405, []string{"POST"}, func(t *testing.T, r harness.Reply) {
			wantNativeError(t, r, "invalid_request")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.In(t).Do(c.method, c.path, nil).Want(t, c.status)
			c.check(t, reply)
			if allow := reply.Header.Get("Allow"); allow != strings.Join(c.allow, ", ") {
				t.Errorf("Allow: %q, want %v", allow, c.allow)
			}
		})
	}
	t.Run("unknown Anthropic-style path", func(t *testing.T) {
		reply := s.In(t).Post("/v1/messages/nothing", "{}").Want(t, 404)
		wantJSON(t, reply)
		if reply.Get("type").Str != "error" || reply.Get("error.type").Str != "not_found_error" || reply.Get("error.message").Str == "" || reply.Get("request_id").Str == "" {
			t.Errorf("not the Anthropic envelope: %s", reply.Body)
		}
	})
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after all of them: %q", a.Content)
	}
}

func TestErrors_ABodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{API: []string{"max_body 1KiB"}})
	large := `{"model":"` + harness.Model + `",` + hello + `,"user":"` + strings.Repeat("x", 2048) + `"}`
	for name, body := range map[string]io.Reader{
		"with its length": strings.NewReader(large),
		"in chunks":       io.MultiReader(strings.NewReader(large)), // its length is unknown
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.In(t).Do(http.MethodPost, harness.ChatPath, body).Want(t, http.StatusRequestEntityTooLarge)
			wantOpenAIError(t, reply, "invalid_request_error", "request_too_large")
			if !strings.Contains(reply.Get("error.message").Str, "1024") {
				t.Errorf("the limit isn't told: %s", reply.Body)
			}
		})
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("a small body after that: %q", a.Content)
	}
}

func TestErrors_APromptLongerThanTheContextIsRefusedWithBothNumbers(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: []string{"model " + harness.Model + " {", "context_length 256", "}"}}, errorsAPromptLongerThanTheContextIsRefusedWithBothNumbers)
}

func errorsAPromptLongerThanTheContextIsRefusedWithBothNumbers(t *testing.T, s *harness.Server) {
	long := harness.Ask(strings.Repeat("hello ", 300))
	for name, request := range map[string]harness.Fields{"in one piece": long, "streamed": long.With("stream", true)} {
		t.Run(name, func(t *testing.T) {
			reply := s.In(t).Post(harness.ChatPath, request).Want(t, http.StatusBadRequest)
			wantOpenAIError(t, reply, "invalid_request_error", "context_length_exceeded")
			var numbers []int
			for _, digits := range regexp.MustCompile(`\d+`).FindAllString(reply.Get("error.message").Str, -1) {
				n, _ := strconv.Atoi(digits)
				numbers = append(numbers, n)
			}
			if len(numbers) != 2 || min(numbers[0], numbers[1]) != 256 || max(numbers[0], numbers[1]) < 300 {
				t.Errorf("the prompt's length and the context's, 256, are to be told: %s", reply.Body)
			}
		})
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("a short prompt after that: %q", a.Content)
	}
}

func TestErrors_WithoutAnEngineSayWhatToDo(t *testing.T) {
	t.Parallel()
	without := harness.NewBareHome(t)
	without.AddModel(harness.Model, "tinychat-f16.gguf", harness.ShippedModel(t))
	missing := harness.NewHome(t)
	nowhere := missing.Work + "/nowhere/llama-server"
	for name, c := range map[string]struct {
		home   *harness.Home
		config harness.Config
		says   []string
	}{
		"none at all":              {without, harness.Config{}, []string{"lmcaddy runtime get llama.cpp"}},
		"the configured is absent": {missing, harness.Config{Engine: []string{"path " + nowhere}}, []string{"llama-server doesn't exist", "correct the path"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(c.home.In(t), c.config)
			defer func() {
				if c.home == missing && !strings.Contains(s.Log(), nowhere) {
					t.Errorf("the log doesn't say %q", nowhere)
				}
			}()
			for _, request := range []harness.Fields{harness.Ask(capital), harness.Ask(capital).With("stream", true)} {
				reply := s.Post(harness.ChatPath, request).Want(t, http.StatusServiceUnavailable)
				wantOpenAIError(t, reply, "server_error", "model_load_failed")
				for _, text := range c.says {
					if !strings.Contains(reply.Get("error.message").Str, text) {
						t.Errorf("the message doesn't say %q: %s", text, reply.Body)
					}
				}
				if strings.Contains(reply.Body, missing.Work) {
					t.Errorf("the message names a folder of the server: %s", reply.Body)
				}
			}
		})
	}
}
