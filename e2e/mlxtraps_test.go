package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// trapped is a server over a fake mlx_lm.server, which shows its traps on command.
type trapped struct {
	*harness.Server
	fake *harness.FakeMLX
}

func trap(t *testing.T, script harness.Fields, settings ...string) trapped {
	t.Helper()
	fake := harness.NewFakeMLX(t, script)
	return trapped{harness.Start(harness.NewMLXHome(t), harness.Config{MLX: fake.Command(), LM: settings}), fake}
}

// engineURL is the address of a path of the engine itself.
func (x trapped) engineURL(path string) string {
	args := x.Engine().Args
	return "http://127.0.0.1:" + args[slices.Index(args, "--port")+1] + path
}

// raw sends a request to the engine itself, past lmcaddy. The status of an empty answer is 0.
func (x trapped) raw(t *testing.T, method, path, body string) (status int, answer string, resp *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, x.engineURL(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err = new(http.Transport).RoundTrip(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	content, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(content), resp
}

// posts are the bodies of the requests for text that the engines got.
func (x trapped) posts(t *testing.T) (bodies []gjson.Result) {
	t.Helper()
	for _, event := range x.fake.Events(t, "request") {
		if event.Get("method").Str == http.MethodPost {
			bodies = append(bodies, gjson.Parse(event.Get("body").Str))
		}
	}
	return bodies
}

// wantHello checks that the fake's answer has come.
func wantHello(t *testing.T, a harness.Answer) {
	t.Helper()
	if a.Content != helloFromFake || a.Finish != "stop" || a.Model != harness.Model {
		t.Errorf("%+v", a)
	}
}

const helloFromFake = "Hello from the fake engine."

// TestMLXTraps: what mlx_lm.server gets wrong, as docs/mlx.md lists it, and what a client sees.
func TestMLXTraps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		test func(*testing.T)
	}{
		{"1 health says nothing about the model", trapHealth},
		{"2 nothing says that the model is loaded", trapReadiness},
		{"3 a failed load leaves a deaf process", trapFailedLoad},
		{"3 so does any failure later", trapDeadThread},
		{"3 or a thread that only hangs", trapHang},
		{"4 nor does a port in use end it", trapPort},
		{"5 the field model loads models", trapModel},
		{"6 mistakes get no answer, or kill it", trapMistakes},
		{"7 it speaks HTTP/1.0", trapHTTP},
		{"8 each failure is 404", trapNotFound},
		{"9 only streams can be cancelled", trapCancel},
		{"10 it can't unload", trapUnload},
		{"11 it mixes up the biases of requests", trapBiases},
		{"12 a prompt that it has answered with ends it", trapContinued},
	} {
		t.Run(tt.name, tt.test)
	}
}

func trapHealth(t *testing.T) {
	x := trap(t, harness.Fields{"Load": harness.Fields{"Gate": "load"}})
	replied := x.Go(harness.ChatPath, harness.Ask("Hello"))
	x.fake.WaitFor(t, "gated")
	if status, body, _ := x.raw(t, http.MethodGet, "/health", ""); status != http.StatusOK || body != `{"status": "ok"}` {
		t.Errorf("the engine's health while it loads: %d %s", status, body)
	}
	if ids := x.IDs(); len(ids) > 0 {
		t.Errorf("while it loads, %v are loaded", ids)
	}
	for _, body := range x.posts(t) {
		if strings.Contains(body.Raw, "Hello") {
			t.Errorf("it got the request before it was ready: %s", body.Raw)
		}
	}
	x.fake.Release(t, "load")
	wantHello(t, harness.Wait(t, "the answer", replied).Answer(x.Server))
	if ids := x.IDs(); len(ids) != 1 {
		t.Errorf("%v are loaded", ids)
	}
}

func trapReadiness(t *testing.T) {
	x := trap(t, harness.Fields{"Load": harness.Fields{"Gate": "load"}})
	loaded := x.Go(harness.LoadPath, harness.Fields{"model": harness.Model})
	x.fake.WaitFor(t, "gated")
	x.fake.Release(t, "load")
	reply := harness.Wait(t, "the load", loaded).Want(t, http.StatusOK)
	posts := x.posts(t)
	if reply.Get("status").Str != "loaded" || len(posts) != 1 || posts[0].Get("max_tokens").Int() != 1 {
		t.Errorf("%s, after the requests %v; want one for one token", reply.Body, posts)
	}
	st := x.NativeStream(harness.NativeAsk("Hello"))
	if st.Text("message") != helloFromFake {
		t.Errorf("%q", st.Text("message"))
	}
}

func trapFailedLoad(t *testing.T) {
	const reason = "Model type foobar not supported"
	x := trap(t, harness.Fields{"Load": harness.Fields{"Fail": "ValueError: " + reason}})
	for _, isStream := range []bool{false, true} {
		reply := x.Post(harness.ChatPath, harness.Ask("Hello").With("stream", isStream)).Want(t, http.StatusServiceUnavailable)
		wantOpenAIError(t, reply, "server_error", "model_load_failed")
		if !strings.Contains(reply.Get("error.message").Str, reason) || strings.Contains(reply.Body, x.Dir) {
			t.Errorf("%s", reply.Body)
		}
		if engines := x.Engines(); len(engines) > 0 {
			t.Errorf("there run %v", engines)
		}
	}
}

// deaf is a request after which the engine answers no other.
const deaf = `{"prompt":["a","b"]}`

func trapDeadThread(t *testing.T) {
	x := trap(t, harness.Fields{"Rules": []harness.Fields{{
		"Contains": "Count", "Answer": harness.Fields{"Chunks": 6}, "Cues": []harness.Fields{{"After": 3, "Gate": "third"}},
	}}})
	st := x.Stream(harness.Ask("Count").With("temperature", 1)) // at 0, another process would repeat the answer
	st.WaitContent()
	engine := x.Engine()
	url := x.engineURL("/v1/completions")
	go func() { // it gets no answer
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(deaf))
		if err == nil {
			if resp, err := new(http.Transport).RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}()
	st.WaitEnd()
	chunks := st.Chunks()
	if last := chunks[len(chunks)-1]; st.IsWhole() || last.Get("error.message").Str == "" {
		t.Errorf("whole: %v; the last chunk: %s", st.IsWhole(), last.Raw)
	}
	wantHello(t, x.Chat(harness.Ask("Hello")))
	if engine.Alive() {
		t.Error("the deaf process is still there")
	}
	x.Engine()
}

func trapHang(t *testing.T) {
	x := trap(t, harness.Fields{"Cases": []harness.Fields{{"Start": 1, "Script": harness.Fields{"Rules": []harness.Fields{{
		"Contains": "Hello", "Cues": []harness.Fields{{"After": 0, "Do": "stick"}},
	}}}}}}, "stall_timeout 2s")
	stalled := x.Post(harness.ChatPath, harness.Ask("Hello")).Want(t, http.StatusGatewayTimeout)
	wantOpenAIError(t, stalled, "server_error", "engine_stalled")
	wantHello(t, x.Chat(harness.Ask("Hello"))) // of a second process
	if n := len(x.fake.Events(t, "started")); n != 2 {
		t.Errorf("%d processes were started, want 2", n)
	}
	x.Engine()
}

func trapPort(t *testing.T) {
	x := trap(t, harness.Fields{"Cases": []harness.Fields{{"Start": 1, "Script": harness.Fields{"PortTaken": true}}}})
	wantHello(t, x.Chat(harness.Ask("Hello")))
	if started := x.fake.Events(t, "started"); len(started) != 2 {
		t.Errorf("%d processes were started, want 2", len(started))
	}
	x.Engine() // the first is gone
}

func trapModel(t *testing.T) {
	x := trap(t, nil)
	for _, name := range []string{harness.Model, harness.Bare} {
		wantHello(t, x.Chat(harness.Ask("Hello").With("model", name)))
		wantHello(t, x.Stream(harness.Ask("Hello").With("model", name)).Answer())
	}
	for _, body := range x.posts(t) {
		if got := body.Get("model"); got.Exists() && got.Str != "default_model" {
			t.Errorf("the engine is asked for the model %s", got.Raw)
		}
	}
	engine := x.Engine()
	x.Post(harness.ChatPath, harness.Ask("Hello").With("model", "nobody/nothing")).Want(t, http.StatusNotFound)
	if status, body, _ := x.raw(t, http.MethodPost, harness.ChatPath, `{"model":"nobody/nothing","messages":[{"role":"user","content":"a"}]}`); status != http.StatusNotFound {
		t.Errorf("the engine itself: %d %s", status, body)
	}
	wantHello(t, x.Chat(harness.Ask("Hello")))
	if now := x.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

func trapMistakes(t *testing.T) {
	x := trap(t, nil)
	wantHello(t, x.Chat(harness.Ask("Hello")))
	engine := x.Engine()
	if status, body, _ := x.raw(t, http.MethodPost, harness.ChatPath, `{"messages":[],"temperature":-1}`); status != 0 {
		t.Errorf("the engine itself: %d %s", status, body)
	}
	ask := harness.Ask("Hello")
	for name, c := range map[string]struct {
		path    string
		request harness.Fields
		param   string // of a refusal; empty: it is answered
	}{
		"nulls":                 {harness.ChatPath, ask.With("temperature", nil).With("top_p", nil).With("stop", nil).With("seed", nil).With("logit_bias", nil), ""},
		"a temperature below 0": {harness.ChatPath, ask.With("temperature", -1), "temperature"},
		"a whole number as 3.0": {harness.ChatPath, harness.Fields{"model": harness.Model, "messages": ask["messages"], "max_tokens": json.RawMessage("30.0")}, ""},
		"any top_k":             {harness.ChatPath, ask.With("temperature", 1).With("top_k", 100000), ""},
		"top_k of -1":           {harness.ChatPath, ask.With("temperature", 1).With("top_k", -1), ""},
		"a seed below 0":        {harness.ChatPath, ask.With("seed", -1), ""},
		"a seed that is huge":   {harness.ChatPath, ask.With("seed", 1<<40), ""},
		"a stop of numbers":     {harness.ChatPath, ask.With("stop", []int{5}), "stop"},
		"a stop that is one":    {harness.ChatPath, ask.With("stop", 5), "stop"},
		"an empty stop":         {harness.ChatPath, ask.With("stop", ""), ""},
		"a token beyond all":    {harness.ChatPath, ask.With("logit_bias", harness.Fields{"9999999": 5}), "logit_bias"},
		"no messages":           {harness.ChatPath, harness.Fields{"model": harness.Model}, "messages"},
		"xtc as whole numbers":  {harness.ChatPath, ask.With("xtc_probability", 0).With("xtc_threshold", 0), ""},
		"prompts":               {completionsPath, complete([]string{"a", "b"}), ""},
		"an empty prompt":       {completionsPath, complete(""), "prompt"},
		"half a character":      {harness.ChatPath, harness.Fields{"model": harness.Model, "messages": json.RawMessage(`[{"role":"user","content":"Hello \ud83d"}]`)}, "any"},
	} {
		t.Run(name, func(t *testing.T) {
			s := x.In(t)
			reply := s.Post(c.path, c.request)
			switch {
			case c.param == "any" && (reply.Status == http.StatusOK || reply.Status == http.StatusBadRequest):
			case c.param == "" && (reply.Status != http.StatusOK || !reply.Get("choices.0").Exists()):
				t.Errorf("status %d: %s", reply.Status, reply.Body)
			case c.param != "" && (reply.Status != http.StatusBadRequest || !strings.HasPrefix(reply.Get("error.param").Str, c.param)):
				t.Errorf("status %d, want a refusal of %s: %s", reply.Status, c.param, reply.Body)
			}
			if now := s.Engine(); now.PID != engine.PID {
				t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
			}
		})
	}
	wantHello(t, x.Chat(harness.Ask("Hello")))
}

func trapHTTP(t *testing.T) {
	x := trap(t, nil)
	wantHello(t, x.Chat(harness.Ask("Hello")))
	body := `{"model":"default_model","messages":[{"role":"user","content":"Hello"}]}`
	if _, _, resp := x.raw(t, http.MethodPost, harness.ChatPath, body); resp == nil || resp.Proto != "HTTP/1.0" || !resp.Close {
		t.Errorf("the engine itself answers with %+v", resp)
	}
	// A client may send its body in chunks, and use its connection again.
	inChunks := io.MultiReader(strings.NewReader(`{"model":"`+harness.Model+`",`), strings.NewReader(hello+`}`))
	wantHello(t, x.Do(http.MethodPost, harness.ChatPath, inChunks).Answer(x.Server))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.Base+harness.ChatPath, strings.NewReader(`{"model":"`+harness.Model+`",`+hello+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if content, err := io.ReadAll(resp.Body); err != nil || resp.Proto != "HTTP/1.1" || resp.Close || !strings.HasSuffix(string(content), "data: [DONE]\n\n") {
		t.Errorf("%s, closing %v, %v: %s", resp.Proto, resp.Close, err, content)
	}
}

func trapNotFound(t *testing.T) {
	const reason = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
	x := trap(t, harness.Fields{"Rules": []harness.Fields{{"Contains": "Hello", "Status": http.StatusNotFound, "Body": `{"error": "` + reason + `"}`}}})
	for path, request := range map[string]harness.Fields{
		harness.ChatPath:       harness.Ask("Hello"),
		harness.RespondPath:    harness.RespondAsk("Hello"),
		harness.NativeChatPath: harness.NativeAsk("Hello"),
		"/v1/messages":         harness.Ask("Hello").With("max_tokens", 9),
	} {
		reply := x.Post(path, request)
		if reply.Status != http.StatusBadRequest || !strings.Contains(reply.Get("error.message").Str, reason) || !strings.HasPrefix(reply.Get("error.type").Str, "invalid_request") {
			t.Errorf("%s: status %d: %s", path, reply.Status, reply.Body)
		}
	}
	wantHello(t, x.Chat(harness.Ask("Goodbye")))
}

func trapCancel(t *testing.T) {
	x := trap(t, harness.Fields{"Rules": []harness.Fields{{"Contains": "Count", "Answer": harness.Fields{"Chunks": 100000}, "Delay": 1000000}}})
	giveUp := x.GoUntil(harness.ChatPath, harness.Fields{"model": harness.Model, "messages": []harness.Fields{{"role": "user", "content": "Count"}}})
	asked := func() bool {
		return slices.ContainsFunc(x.posts(t), func(body gjson.Result) bool { return strings.Contains(body.Raw, "Count") })
	}
	harness.Eventually(t, harness.Patience, "the engine has the request", asked)
	giveUp()
	x.fake.WaitFor(t, "cancelled")
	for _, body := range x.posts(t) {
		if strings.Contains(body.Raw, "Count") && !body.Get("stream").Bool() {
			t.Errorf("the engine can't notice that the client of this request has gone: %s", body.Raw)
		}
	}
	wantHello(t, x.Chat(harness.Ask("Hello")))
}

func trapUnload(t *testing.T) {
	x := trap(t, nil)
	wantHello(t, x.Chat(harness.Ask("Hello")))
	engine := x.Engine()
	if status, body, _ := x.raw(t, http.MethodPost, "/unload", "{}"); status != http.StatusNotFound || !engine.Alive() {
		t.Errorf("the engine itself: %d %s", status, body)
	}
	wantUnloaded(t, x.Server, harness.Model)
	if engine.Alive() || len(x.Engines()) > 0 {
		t.Errorf("after the answer to unload, there run %v", x.Engines())
	}
	wantHello(t, x.Chat(harness.Ask("Hello")))
}

// A request without biases and penalties makes the engine lose count of whose are whose: those of the next ones are applied to others, or
// to none, or end its thread. So each gets a bias that changes nothing.
func trapBiases(t *testing.T) {
	x := trap(t, nil)
	wantHello(t, x.Chat(harness.Ask("Hello")))
	wantHello(t, x.Chat(harness.Ask("Hello").With("logit_bias", harness.Fields{}).With("presence_penalty", 1)))
	x.Post(completionsPath, complete("Hello")).Want(t, http.StatusOK)
	x.Post("/v1/messages/count_tokens", harness.Ask("Hello")).Want(t, http.StatusOK)
	for _, body := range x.posts(t) {
		if !body.Get("logit_bias.@keys.0").Exists() {
			t.Errorf("a request has no bias: %s", body.Raw)
		}
	}
}

func trapContinued(t *testing.T) {
	x := trap(t, nil)
	text := "Hello "
	for range 3 {
		reply := x.Post(completionsPath, complete(text).With("max_tokens", 2)).Want(t, http.StatusOK)
		choice := reply.Get("choices.0")
		if choice.Get("text").Str == "" || choice.Get("finish_reason").Str != "length" || reply.Get("usage.completion_tokens").Int() != 2 {
			t.Fatalf("%s", reply.Body)
		}
		text += choice.Get("text").Str
	}
	engine := x.Engine()
	if started := x.fake.Events(t, "started"); len(started) != 1 {
		t.Errorf("%d engines were started", len(started))
	}
	ask := func(prompt string) (status int, text string) {
		body, err := json.Marshal(harness.Fields{"prompt": prompt, "max_tokens": 2})
		if err != nil {
			t.Fatal(err)
		}
		status, answer, _ := x.raw(t, http.MethodPost, completionsPath, string(body))
		return status, gjson.Get(answer, "choices.0.text").Str
	}
	status, more := ask("Bye ")
	if status != http.StatusOK || more == "" {
		t.Fatalf("the engine answers with %d, %q", status, more)
	}
	if status, _ := ask("Bye " + more); status == http.StatusOK {
		t.Error("the engine answers what ends a real one")
	}
	if again := x.Post(completionsPath, complete(text)).Want(t, http.StatusOK); again.Get("choices.0.text").Str == "" {
		t.Errorf("%s", again.Body)
	}
	if x.Engine().PID == engine.PID {
		t.Error("the engine that has ended serves on")
	}
}
