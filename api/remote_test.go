package api

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeremote"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

// withRemotes has the server reach remotes, called a, b and so on, in this order.
func withRemotes(all ...*fakeremote.Server) option {
	return func(_ *endpoint.Config, s *node.Settings) {
		for i, r := range all {
			s.Remotes = append(s.Remotes, remoteConfig(string(rune('a'+i)), r, i+1))
		}
	}
}

func remoteConfig(name string, r *fakeremote.Server, prefer int) remote.Config {
	c := remote.Config{Name: name, URL: r.URL, Prefer: prefer, Key: "the remote's key"}
	if certificate := r.Certificate(); certificate != nil {
		c.Pin = fmt.Sprintf("%x", sha256.Sum256(certificate.Raw))
	}
	return c
}

// await waits until the server knows a model.
func (s *server) await(model string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the model "+model+" is known", func() bool { return s.do("GET", "/v1/models/"+model, "").status == http.StatusOK })
}

func (s *server) say(model, prompt, more string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"`+prompt+`"}]`+more+`}`, "Authorization", "Bearer the client's token")
}

func TestRemote_AnswersInEveryDialect(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"vllm", "sglang"} {
		far := fakeremote.Start(t, kind, kind == "sglang", "Org/Far", "bge-embed")
		s := serve(t, &fakeengine.Script{}, withRemotes(far))
		s.await("org/far")
		const messages = `"messages":[{"role":"user","content":"hi"}]`
		for path, body := range map[string]string{
			"/v1/chat/completions":      `{"model":"org/far",` + messages + `}`,
			"/api/v0/chat/completions":  `{"model":"far",` + messages + `}`,
			"/v1/messages":              `{"model":"org/far","max_tokens":50,` + messages + `}`,
			"/v1/responses":             `{"model":"org/far","input":"hi"}`,
			"/api/v1/chat":              `{"model":"a/org/far","input":"hi"}`,
			"/api/chat":                 `{"model":"org/far","stream":false,` + messages + `}`,
			"/v1/completions":           `{"model":"org/far","prompt":"hi"}`,
			"/v1/embeddings":            `{"model":"bge-embed","input":"hi"}`,
			"/v1/messages/count_tokens": `{"model":"org/far",` + messages + `}`,
		} {
			got := s.do("POST", path, body)
			want := map[string]string{"/v1/embeddings": "-0.5", "/v1/messages/count_tokens": "7", "/v1/completions": `"choices"`}[path]
			if want == "" {
				want = "Hello from afar."
			}
			switch {
			case kind == "sglang" && strings.HasSuffix(path, "count_tokens"):
				if got.status != http.StatusBadRequest {
					t.Errorf("%s %s: %d %s", kind, path, got.status, got.body)
				}
			case got.status != http.StatusOK || !strings.Contains(got.body, want):
				t.Errorf("%s %s: %d %s", kind, path, got.status, got.body)
			}
		}
	}
}

func TestRemote_IsSentNothingOfTheClient(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "Org/Far")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	s.do("POST", "/v1/chat/completions", `{"model":"org/far","messages":[{"role":"user","content":"hi"}],"user":"ada","metadata":{"a":"b"},"store":true,"grammar":"x"}`,
		"Authorization", "Bearer the client's token", "Cookie", "c=1", "X-Forwarded-For", "10.0.0.9", "User-Agent", "the client")
	asked := far.Asked()
	if len(asked) != 1 {
		t.Fatalf("the remote got %d requests", len(asked))
	}
	for name, values := range asked[0].Header {
		switch name {
		case "Content-Type", "Content-Length", "Accept":
		case "Via":
			if !strings.HasPrefix(values[0], "1.1 lmcaddy-") || strings.Contains(values[0], ",") {
				t.Errorf("the servers that it has passed are %q", values[0])
			}
		case "User-Agent":
			if values[0] != "lmcaddy" {
				t.Errorf("the user agent is %q", values[0])
			}
		case "Authorization":
			if values[0] != "Bearer the remote's key" {
				t.Errorf("the key is %q", values[0])
			}
		default:
			t.Errorf("the remote got the header %s: %q", name, values)
		}
	}
	var sent map[string]any
	if err := json.Unmarshal([]byte(asked[0].Body), &sent); err != nil {
		t.Fatal(err)
	}
	for name := range sent {
		switch name {
		case "model", "messages", "stream", "stream_options":
		default:
			t.Errorf("the remote got the field %s", name)
		}
	}
	if sent["model"] != "Org/Far" {
		t.Errorf("the model is %q", sent["model"])
	}
}

func TestRemote_CallsOfTools(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{}, withRemotes(fakeremote.Start(t, "vllm", false, "Org/Far")))
	s.await("org/far")
	const tools = `,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	for _, stream := range []string{"", `,"stream":true`} {
		got := s.say("org/far", fakeremote.Call, tools+stream)
		if got.status != http.StatusOK || !strings.Contains(got.body, `"name":"get_weather"`) || !strings.Contains(got.body, `"finish_reason":"tool_calls"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestRemote_AnotherPlaceAnswersBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	for name, break1 := range map[string]func(first *fakeremote.Server){
		"it has ended": func(first *fakeremote.Server) { first.SetDown(true) },
		"too many requests": func(first *fakeremote.Server) {
			first.Refuse(fakeremote.Refusal{Status: 429, RetryAfter: "30", Times: 9})
		},
		"it isn't ready":    func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Status: 503, Times: 9}) },
		"a proxy's error":   func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Status: 502, Times: 9}) },
		"it lost the model": func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Status: 404, Times: 9}) },
		"it fails":          func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Status: 500, Times: 9}) },
		"it lets nobody in": func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Status: 403, Times: 9}) },
		"it breaks off":     func(first *fakeremote.Server) { first.Refuse(fakeremote.Refusal{Times: 9}) },
		"its key changed":   func(first *fakeremote.Server) { first.SetKey("another") },
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				first, second := fakeremote.Start(t, "vllm", http2, "Org/Far"), fakeremote.Start(t, "sglang", http2, "org/far")
				second.Text = "Hello from the second."
				s := serve(t, &fakeengine.Script{}, withRemotes(first, second))
				s.await("a/org/far")
				s.await("b/org/far")
				break1(first)
				for _, stream := range []string{"", `,"stream":true`} {
					if got := s.say("org/far", "hi", stream); got.status != http.StatusOK || !strings.Contains(got.body, "second.") {
						t.Errorf("%d %s", got.status, got.body)
					}
				}
				if got := s.say("b/org/far", "hi", ""); got.status != http.StatusOK {
					t.Errorf("by its name: %d %s", got.status, got.body)
				}
			})
		}
	}
}

// Several remotes may end at the same time.
func TestRemote_TwoPlacesEndAndAThirdAnswers(t *testing.T) {
	t.Parallel()
	first, second, third := fakeremote.Start(t, "vllm", false, "org/far"), fakeremote.Start(t, "vllm", false, "org/far"), fakeremote.Start(t, "vllm", false, "org/far")
	third.Text = "Hello from the third."
	s := serve(t, &fakeengine.Script{}, withRemotes(first, second, third))
	for _, model := range []string{"a/org/far", "b/org/far", "c/org/far"} {
		s.await(model)
	}
	first.SetDown(true)
	second.SetDown(true)
	if got := s.say("org/far", "hi", ""); got.status != http.StatusOK || !strings.Contains(got.body, "third.") {
		t.Errorf("%d %s", got.status, got.body)
	}
	third.SetDown(true)
	if got := s.say("org/far", "hi", ""); got.status != http.StatusServiceUnavailable || got.code() != "remote_unreachable" {
		t.Errorf("when all have ended: %d %s", got.status, got.body)
	}
}

func TestRemote_AConnectionThatBreaksIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	first, second := fakeremote.Start(t, "vllm", true, "org/far"), fakeremote.Start(t, "vllm", true, "org/far")
	s := serve(t, &fakeengine.Script{}, withRemotes(first, second))
	s.await("a/org/far")
	s.await("b/org/far")
	got := s.say("org/far", fakeremote.Reset, "")
	if got.status != http.StatusBadGateway || len(first.Asked()) != 1 || len(second.Asked()) != 1 {
		t.Errorf("%d %s, after %d and %d requests", got.status, got.body, len(first.Asked()), len(second.Asked()))
	}
	if got := s.say("a/org/far", fakeremote.Reset, ""); got.status != http.StatusBadGateway || len(first.Asked()) != 3 || len(second.Asked()) != 1 {
		t.Errorf("by its name: %d %s, after %d and %d requests", got.status, got.body, len(first.Asked()), len(second.Asked()))
	}
	if got := s.say("org/far", "hi", ""); got.status != http.StatusOK { // nothing is held against the remote, which is alive
		t.Errorf("the next request: %d %s", got.status, got.body)
	}
}

func TestRemote_ThisMachineStandsIn(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "lmcaddy/tinychat")
	s := serve(t, &fakeengine.Script{}, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Remotes = []remote.Config{remoteConfig("a", far, -1)}
	})
	s.await("a/lmcaddy/tinychat")
	if got := s.chat(""); got.status != http.StatusOK || !strings.Contains(got.body, "from afar") {
		t.Errorf("from afar: %d %s", got.status, got.body)
	}
	far.SetDown(true)
	if got := s.chat(""); got.status != http.StatusOK || !strings.Contains(got.body, "fake engine") {
		t.Errorf("from here: %d %s", got.status, got.body)
	}
	if got := s.chat(`,"top_n_sigma":2`); got.status != http.StatusOK {
		t.Errorf("with a field of this machine's engine: %d %s", got.status, got.body)
	}
}

func TestRemote_ErrorsAreTheClientsOwn(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "org/far")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	for prompt, want := range map[string]struct {
		status int
		code   string
	}{
		fakeremote.TooLong: {400, "context_length_exceeded"},
		fakeremote.Fail:    {502, "engine_failed"},
		fakeremote.Reset:   {502, "engine_failed"},
	} {
		if got := s.say("org/far", prompt, ""); got.status != want.status || got.code() != want.code {
			t.Errorf("%s: %d %s", prompt, got.status, got.body)
		}
	}
	got := s.do("POST", "/v1/messages", `{"model":"org/far","max_tokens":9,"messages":[{"role":"user","content":"too long"}]}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"type":"invalid_request_error"`) || !strings.Contains(got.body, "5000") {
		t.Errorf("Anthropic-style: %d %s", got.status, got.body)
	}
	for _, prompt := range []string{fakeremote.BreakOff, fakeremote.LateFail} {
		if got := s.say("org/far", prompt, `,"stream":true`); !strings.Contains(got.body, `"error"`) || strings.Contains(got.body, `"finish_reason":"stop"`) {
			t.Errorf("%s amid a stream: %s", prompt, got.body)
		}
	}
	far.Refuse(fakeremote.Refusal{Status: 429, RetryAfter: "30", Body: `{"error":{"message":"slow down"}}`, Times: 9})
	if got := s.say("org/far", "hi", ""); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" || got.code() != "remote_busy" {
		t.Errorf("429: %d %v %s", got.status, got.header, got.body)
	}
	if got := s.say("org/far", "hi", ""); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" || len(far.Asked()) > 20 {
		t.Errorf("429 again: %d %s", got.status, got.body)
	}
}

func TestRemote_TellsNoSecret(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "org/far")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	var quoted []string
	for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError, http.StatusNotImplemented} {
		far.Refuse(fakeremote.Refusal{Status: status, Body: `{"error":{"message":"Invalid: \"Bearer the remote's key\" is not allowed."}}`, Times: 9})
		got := s.say("org/far", "hi", "")
		if !strings.Contains(got.body, "is not allowed") {
			t.Errorf("%d: %d %s", status, got.status, got.body)
		}
		quoted = append(quoted, got.body)
	}
	far.SetKey("another")
	refused := s.say("org/far", "hi", "")
	if refused.status != http.StatusBadGateway || refused.code() != "remote_key_refused" {
		t.Errorf("%d %s", refused.status, refused.body)
	}
	far.SetDown(true)
	for _, said := range append(quoted, refused.body, s.say("org/far", "hi", "").body, s.do("GET", "/api/v1/models", "").body, s.do("GET", "/v1/models", "").body) {
		if strings.Contains(said, "the remote's key") || strings.Contains(said, far.URL) || strings.Contains(said, "127.0.0.1") {
			t.Errorf("said: %s", said)
		}
	}
}

func TestRemote_ASilentAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "org/far")
	hasty := remoteConfig("a", far, 1)
	hasty.Stall = 100 * time.Millisecond
	s := serve(t, &fakeengine.Script{}, func(_ *endpoint.Config, settings *node.Settings) { settings.Remotes = []remote.Config{hasty} })
	s.await("org/far")
	if got := s.say("org/far", fakeremote.Silent, ""); got.status != http.StatusGatewayTimeout || len(far.Asked()) != 1 {
		t.Errorf("%d %s, after %d requests", got.status, got.body, len(far.Asked()))
	}
	far.Cancelled(t)
	if in := s.node.Overview().Instances; len(in) != 1 || in[0].Away != "" || !in[0].HeldUntil.IsZero() {
		t.Errorf("the remote is blamed: %+v", in)
	}
	settings := s.node.Settings()
	settings.Remotes = []remote.Config{remoteConfig("patient", far, 1)} // the next answer may take a while, too
	if err := s.node.Push(2, settings); err != nil {
		t.Fatal(err)
	}
	s.await("patient/org/far")
	if got := s.say("patient/org/far", "hi", ""); got.status != http.StatusOK {
		t.Errorf("the next request: %d %s", got.status, got.body)
	}
}

func TestRemote_IsToldThatTheClientDisconnected(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		far := fakeremote.Start(t, "vllm", http2, "org/far")
		s := serve(t, &fakeengine.Script{}, withRemotes(far))
		s.await("org/far")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{"model":"org/far","stream":true,"messages":[{"role":"user","content":"be silent"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		far.Cancelled(t)
	}
}

// TestRemote_IgnoresTheLimitOfTokens: its answer is read no further than what was asked for.
func TestRemote_IgnoresTheLimitOfTokens(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		far := fakeremote.Start(t, "vllm", http2, "org/far")
		s := serve(t, &fakeengine.Script{}, withRemotes(far))
		s.await("org/far")
		for _, more := range []string{"", `,"stream":true`, `,"stop":["nothing"]`} {
			got := s.say("org/far", fakeremote.Endless, `,"max_tokens":5`+more)
			if n := strings.Count(got.body, "on "); got.status != http.StatusOK || n > 50 || !strings.Contains(got.body, `"finish_reason":"length"`) {
				t.Errorf("%s: %d, %d pieces, %.300s", more, got.status, n, got.body)
			}
			far.Cancelled(t)
		}
	}
}

func TestRemote_OfALimitedToken(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "org/far", "org/hidden")
	other := fakeremote.Start(t, "vllm", false, "org/hidden")
	s := serve(t, &fakeengine.Script{}, withRemotes(far, other))
	s.await("org/far")
	s.await("b/org/hidden")
	s = guarded(s)
	secret, _ := s.token(access.Token{Models: []string{"org/far"}})
	as := []string{"Authorization", "Bearer " + secret}
	for _, path := range []string{"/api/v1/models", "/v1/models", "/api/v0/models", "/api/v1/ps", "/api/tags"} {
		if got := s.do("GET", path, "", as...); got.status != http.StatusOK || strings.Contains(got.body, "hidden") || !strings.Contains(got.body, "org/far") || strings.Contains(got.body, `"name":"b"`) {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	for _, name := range []string{"org/hidden", "a/org/hidden", "b/org/hidden", "hidden"} {
		none := s.do("POST", "/v1/chat/completions", `{"model":"x`+name+`","messages":[]}`, as...)
		if got := s.do("POST", "/v1/chat/completions", `{"model":"`+name+`","messages":[]}`, as...); got.status != none.status || got.code() != none.code() {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"`+name+`"}`, as...); got.status != http.StatusNotFound {
			t.Errorf("an unload of %s: %d %s", name, got.status, got.body)
		}
	}
}

func TestRemote_IsListed(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "Org/Far", "lmcaddy/tinychat")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	native := s.do("GET", "/api/v1/models", "").body
	for _, want := range []string{`"key":"org/far"`, `"places":[{"remote":"a","instance_id":"a/org/far","loaded":true,"reachable":true}]`, `"instance_id":"a/lmcaddy/tinychat"`, `"format":null`} {
		if !strings.Contains(native, want) {
			t.Errorf("GET /api/v1/models lacks %s: %s", want, native)
		}
	}
	for path, want := range map[string]string{
		"/v1/models": `"id":"org/far"`, "/api/v0/models": `"id":"org/far"`, "/api/v1/ps": `"remote":"a"`, "/api/v1/models/org/far": `"engine":"remote"`, "/api/tags": "org/far",
	} {
		if got := s.do("GET", path, ""); got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"org/far"}`); got.status != http.StatusBadRequest || got.code() != "not_supported" {
		t.Errorf("a load: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"a/org/far"}`); got.status != http.StatusBadRequest || got.code() != "not_supported" {
		t.Errorf("an unload: %d %s", got.status, got.body)
	}
	if got := s.do("DELETE", "/api/v1/models/org/far", ""); got.status != http.StatusForbidden {
		t.Errorf("a deletion: %d %s", got.status, got.body)
	}
}

func TestRemote_AReloadKeepsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "org/far")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{"model":"org/far","stream":true,"messages":[{"role":"user","content":"be silent"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	settings := s.node.Settings()
	settings.Remotes = nil
	if err := s.node.Push(2, settings); err != nil {
		t.Fatal(err)
	}
	if got := s.do("GET", "/v1/models/org/far", ""); got.status == http.StatusOK {
		testkit.Eventually(t, "the models of the remote are gone", func() bool { return s.do("GET", "/v1/models/org/far", "").status != http.StatusOK })
	}
	settings.Remotes = []remote.Config{remoteConfig("again", far, 1)}
	if err := s.node.Push(3, settings); err != nil {
		t.Fatal(err)
	}
	s.await("again/org/far")
	if got := s.say("org/far", "hi", ""); got.status != http.StatusOK {
		t.Errorf("after it was added again: %d %s", got.status, got.body)
	}
	resp.Body.Close()
	far.Cancelled(t)
}

// TestRemote_SaysWhyItIsNotAsked: after a refusal of the key or the model, requests get the reason for as long as the remote isn't asked.
func TestRemote_SaysWhyItIsNotAsked(t *testing.T) {
	t.Parallel()
	soon := regexp.MustCompile(`It is tried again in ([1-9]|10)s\.`)
	for status, want := range map[int]string{http.StatusUnauthorized: "refused the key", http.StatusNotFound: "doesn't know the model"} {
		far := fakeremote.Start(t, "vllm", false, "Org/Far")
		s := serve(t, &fakeengine.Script{}, withRemotes(far))
		s.await("org/far")
		far.Refuse(fakeremote.Refusal{Status: status, Body: `{"error":{"message":"There are: secret/model."}}`, Times: 1})
		first, second := s.say("org/far", "hi", ""), s.say("org/far", "hi", "")
		if !strings.Contains(first.body, want) || strings.Contains(first.body, "secret") {
			t.Errorf("%d: %d %s", status, first.status, first.body)
		}
		if second.status != http.StatusServiceUnavailable || !strings.Contains(second.body, want) || !soon.MatchString(second.body) {
			t.Errorf("%d: %d %s", status, second.status, second.body)
		}
	}
}

// TestRemote_RefusesWhatIsOnlyPossibleHere: nothing is said to be done that isn't.
func TestRemote_RefusesWhatIsOnlyPossibleHere(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{}, withRemotes(fakeremote.Start(t, "vllm", false, "Org/Far", "lmcaddy/tinychat")))
	s.await("org/far")
	for body, path := range map[string]string{
		`{"model":"org/far","pinned":true}`:         "/api/v1/models/pin",
		`{"instance_id":"a/org/far","pinned":true}`: "/api/v1/models/pin",
		`{"model":"org/far"}`:                       "/api/v1/models/load",
		`{"model":"a/lmcaddy/tinychat"}`:            "/api/v1/models/load",
	} {
		if got := s.do("POST", path, body); got.status != http.StatusBadRequest || !strings.Contains(got.body, "not_supported") {
			t.Errorf("%s %s: %d %s", path, body, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"lmcaddy/tinychat"}`); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	got := s.do("POST", "/api/v1/models/pin", `{"model":"lmcaddy/tinychat","pinned":true}`)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"instance_ids":["lmcaddy/tinychat"]`) {
		t.Errorf("a model that is here, too: %d %s", got.status, got.body)
	}
}

// TestRemote_GoesNotRound: a request that has been here before is refused, as is one that has passed too many servers. Others tell what they have
// passed.
func TestRemote_GoesNotRound(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "Org/Far")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	const body = `{"model":"org/far","messages":[{"role":"user","content":"hi"}]}`
	for _, via := range []string{"1.1 proxy, 1.1 lmcaddy-" + s.node.ID(), strings.Repeat("1.1 lmcaddy-x, ", 9)} {
		if got := s.do("POST", "/v1/chat/completions", body, "Via", via, "User-Agent", outbound.UserAgent); got.status != http.StatusServiceUnavailable || got.code() != "remote_loop" {
			t.Errorf("%s: %d %s", via, got.status, got.body)
		}
		if got := s.do("GET", "/api/v1/models", "", "Via", via, "User-Agent", outbound.UserAgent); got.status != http.StatusOK {
			t.Errorf("a list: %d %s", got.status, got.body)
		}
	}
	if got := s.do("POST", "/v1/chat/completions", body, "Via", "1.0 fred, 1.1 lmcaddy-other", "User-Agent", outbound.UserAgent); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if via := far.Asked()[0].Header.Get("Via"); via != "1.1 lmcaddy-other, 1.1 lmcaddy-"+s.node.ID() {
		t.Errorf("the remote is told %q", via)
	}
	if got := s.do("POST", "/v1/chat/completions", body, "Via", "1.1 lmcaddy-"+s.node.ID()); got.status != http.StatusOK {
		t.Errorf("a client that says to be a server: %d %s", got.status, got.body)
	}
	if via := far.Asked()[1].Header.Get("Via"); via != "1.1 lmcaddy-"+s.node.ID() {
		t.Errorf("of such a client's request the remote is told %q", via)
	}
}

// TestRemote_ALoopConcernsItsRequestAlone: a tenant who pretends that a request has been at a remote takes it from nobody.
func TestRemote_ALoopConcernsItsRequestAlone(t *testing.T) {
	t.Parallel()
	far := serve(t, &fakeengine.Script{})
	s := serve(t, &fakeengine.Script{}, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Remotes = []remote.Config{{Name: "a", URL: far.URL, Prefer: -1, Kind: remote.KindLmcaddy, Parallel: 1}}
	})
	s.await("a/lmcaddy/tinychat")
	const body = `{"model":"a/lmcaddy/tinychat","messages":[{"role":"user","content":"hi"}]}`
	for range 3 {
		for _, via := range []string{"1.1 lmcaddy-" + far.node.ID(), strings.TrimSuffix(strings.Repeat("1.1 lmcaddy-x, ", 8), ", ")} {
			got := s.do("POST", "/v1/chat/completions", body, "Via", via, "User-Agent", outbound.UserAgent)
			if got.status != http.StatusServiceUnavailable {
				t.Errorf("forged: %d %s", got.status, got.body)
			}
		}
		for _, in := range s.node.Overview().Instances {
			if in.Spec.Remote != nil && (!in.HeldUntil.IsZero() || in.Away != "") {
				t.Fatalf("the remote is held back: %+v", in)
			}
		}
		if got := s.do("POST", "/v1/chat/completions", body); got.status != http.StatusOK {
			t.Errorf("another's request: %d %s", got.status, got.body)
		}
	}
}

// TestRemote_LacksAnEndpoint: a request for what a remote doesn't have takes the model from nobody.
func TestRemote_LacksAnEndpoint(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden} {
		far := fakeremote.Start(t, "vllm", false, "org/far")
		s := serve(t, &fakeengine.Script{}, withRemotes(far))
		s.await("org/far")
		far.Refuse(fakeremote.Refusal{Status: status, Path: "/v1/completions", Times: 9})
		if got := s.do("POST", "/v1/completions", `{"model":"org/far","prompt":"hi"}`); got.status < 500 || !strings.Contains(got.body, "The remote a ") {
			t.Errorf("%d: %d %s", status, got.status, got.body)
		}
		if asked := len(far.Asked()); asked != 1 {
			t.Errorf("%d: it was asked %d times", status, asked)
		}
		if got := s.say("org/far", "hi", ""); got.status != http.StatusOK {
			t.Errorf("%d: a chat after it: %d %s", status, got.status, got.body)
		}
	}
}
