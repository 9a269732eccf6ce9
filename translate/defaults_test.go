package translate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// FuzzChat: whatever a client sends is refused as the client's mistake, or becomes a body that the engine can be sent.
func FuzzChat(f *testing.F) {
	for _, body := range append(bodies,
		`{`+hello+`,"tools":[{"function":{"name":"a"}}],"tool_choice":{"type":"function","function":{"name":"a"}},"parallel_tool_calls":false}`,
		`{`+hello+`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{}]}},"tools":[1]}`,
		`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"schema":{}},"schema":{}},"n":3,"seed":-1,"stop":["a"]}`,
		`{`+hello+`,"max_tokens":-9,"reasoning_effort":"xhigh","ttl":1,"draft_model":"d","verbose":false}`,
		`{"messages":[{"tool_calls":[{"function":{"arguments":""}}]}],"preset":"p","temperature":null}`,
	) {
		f.Add([]byte(body), true, true)
	}
	defaults := map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "system_prompt": json.RawMessage(`"Hi"`)}
	f.Fuzz(func(t *testing.T, raw []byte, vision, preset bool) {
		body, err := jsonbody.Scan(raw)
		if err != nil {
			return
		}
		if preset {
			if body, err = openai.WithDefaults(body, "preset", defaults); err != nil {
				return // our limits
			}
		}
		chat, err := openai.ParseChat(body, capsOf(request.Caps{Vision: vision}))
		if err != nil {
			if err.Status() != 400 || err.Code == "" || err.Message == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		sent := bytes.Join(llamaserver.Wire{}.Chat(body, chat, 1).Body, nil)
		if !json.Valid(sent) {
			t.Fatalf("not JSON: %s", sent)
		}
		top := gjson.ParseBytes(sent).Map()
		if top["stream"].Raw != "true" || top["stream_options"].Raw != `{"include_usage":true}` || top["n"].Exists() && top["n"].Type != gjson.Null {
			t.Fatalf("sent: %s", sent)
		}
		for _, ours := range []string{"ttl", "draft_model"} {
			if top[ours].Exists() {
				t.Fatalf("%s is sent: %s", ours, sent)
			}
		}
		if choice := top["tool_choice"]; choice.IsObject() {
			t.Fatalf("the engine doesn't know a tool_choice of %s", choice)
		}
	})
}
