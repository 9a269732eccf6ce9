package translate_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/remote"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// toolLoops are requests of each dialect that have two calls, with the ids ID1 and ID2, and their results.
var toolLoops = map[string]func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat){
	"chat": func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat) {
		t.Helper()
		return parsed(t, asChat, replace(`{"messages":[{"role":"user","content":"id\":\"a"},{"role":"assistant","tool_calls":[{"id":ID1,"function":{"name":"f"}},{"id":ID2,"function":{"name":"f","arguments":"{\"id\":\"x\"}"}}]},`+
			`{"role":"tool","content":"1","tool_call_id" : ID1},{"role":"tool","tool_call_id":ID2,"content":"2"}]}`))
	},
	"messages": func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat) {
		t.Helper()
		return parsed(t, asMessages, replace(`{"max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":ID1,"name":"f","input":{}},{"type":"tool_use","id":ID2,"name":"f","input":{"id":"x"}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":ID1,"content":"1"},{"type":"tool_result","tool_use_id":ID2,"content":"2"}]}]}`))
	},
	"responses": func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat) {
		t.Helper()
		return parsed(t, asResponse, replace(`{"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":ID1,"name":"f","arguments":"{}"},{"type":"function_call","call_id":ID2,"name":"f","arguments":"{}"},`+
			`{"type":"function_call_output","call_id":ID1,"output":"1"},{"type":"function_call_output","call_id":ID2,"output":"2"}]}`))
	},
	"ollama": func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat) {
		t.Helper()
		return parsed(t, asOllama(ollama.ParseChat), replace(`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":ID1,"function":{"name":"f"}},{"id":ID2,"function":{"name":"f"}}]},`+
			`{"role":"tool","content":"1","tool_call_id":ID1},{"role":"tool","content":"2","tool_call_id":ID2}]}`))
	},
	"our own loop": func(t *testing.T, replace func(string) string) (*jsonbody.Body, *request.Chat) {
		t.Helper()
		asked, err := native.ParseChat(testkit.Scan(t, `{"input":"Hi"}`), "m", caps)
		if err != nil {
			t.Fatal(err)
		}
		items := []translate.Item{asked.Input}
		for _, kind := range []translate.ItemKind{translate.ItemCall, translate.ItemResult} {
			for _, id := range []string{"ID1", "ID2"} {
				items = append(items, translate.Item{Kind: kind, CallID: gjson.Parse(replace(id)).Str, Tool: "f", Args: []byte(`{}`), Parts: []translate.Part{{Text: "1"}}})
			}
		}
		body, err := asked.Upstream(items, nil)
		if err != nil {
			t.Fatal(err)
		}
		return body, &asked.Chat
	},
}

func parsed(t *testing.T, parse func(*jsonbody.Body) (*jsonbody.Body, *request.Chat, error), raw string) (*jsonbody.Body, *request.Chat) {
	t.Helper()
	body, chat, err := parse(testkit.Scan(t, raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return body, chat
}

// idsIn returns the ids of the calls of an engine's request, and those of the results.
func idsIn(t *testing.T, u wire.Upstream) (calls, results []string) {
	t.Helper()
	sent := bytes.Join(u.Body, nil)
	if !gjson.ValidBytes(sent) {
		t.Fatalf("sent: %s", sent)
	}
	for _, message := range gjson.GetBytes(sent, "messages").Array() {
		for _, call := range message.Get("tool_calls").Array() {
			calls = append(calls, call.Get("id").Str)
		}
		if id := message.Get("tool_call_id"); id.Exists() {
			results = append(results, id.Str)
		}
	}
	return calls, results
}

// TestCallIDs: an engine gets nine letters or digits for any id, the same for the same id, and each result has that of its call.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	isRight := regexp.MustCompile(`^[0-9A-Za-z]{9}$`).MatchString
	known := map[string]string{}
	for _, pair := range [][2]string{{"call_abc_0_0", "call_abc_0_1"}, {"toolu_é\"", "1"}, {"call_abc_0_1", "Ab3456789"}} {
		replace := func(s string) string {
			for i, mark := range []string{"ID1", "ID2"} {
				s = string(bytes.ReplaceAll([]byte(s), []byte(mark), jsonbody.AppendString(nil, pair[i])))
			}
			return s
		}
		for dialect, ask := range toolLoops {
			body, chat := ask(t, replace)
			for engine, w := range map[string]wire.Engine{"llama-server": llamaserver.Wire{}, "MLX": mlxlm.Wire{}} {
				calls, results := idsIn(t, w.Chat(body, chat, 0))
				if len(calls) != 2 || !slices.Equal(calls, results) || calls[0] == calls[1] {
					t.Errorf("%s, %s: calls %q, results %q", dialect, engine, calls, results)
					continue
				}
				for i, id := range pair {
					if before, ok := known[id]; !isRight(calls[i]) || ok && before != calls[i] {
						t.Errorf("%s, %s: %q became %q, and before %q", dialect, engine, id, calls[i], before)
					}
					known[id] = calls[i]
				}
			}
		}
	}
	if known["Ab3456789"] != "Ab3456789" {
		t.Errorf("an id that is right became %q", known["Ab3456789"])
	}
}

// TestCallIDs_OfARemote: a remote gets the ids that the client has, which may mean something to it, unless it is a llama-server.
func TestCallIDs_OfARemote(t *testing.T) {
	t.Parallel()
	body, chat := toolLoops["chat"](t, func(s string) string {
		return string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(s), []byte("ID1"), []byte(`"call_1"`)), []byte("ID2"), []byte(`"call_2"`)))
	})
	for _, kind := range remote.Kinds {
		calls, results := idsIn(t, remote.New(remote.Model{Kind: kind, Name: "m"}).Chat(body, chat, 0))
		want := []string{"call_1", "call_2"}
		if kind == remote.LlamaServer {
			want, _ = idsIn(t, llamaserver.Wire{}.Chat(body, chat, 0))
		}
		if !slices.Equal(calls, want) || !slices.Equal(results, want) {
			t.Errorf("%s: calls %q, results %q, wanted %q", kind, calls, results, want)
		}
	}
}
