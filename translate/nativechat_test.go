package translate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// pixel is the smallest PNG image there is, in base64.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// FuzzNativeChat: whatever a client sends is refused as the client's mistake, or becomes a body that the engine can be
// sent, and can be told again as it was.
func FuzzNativeChat(f *testing.F) {
	for _, body := range append(bodies,
		`{"model":"m","input":"hi","system_prompt":"s","previous_response_id":"resp_1","store":false,"reasoning":"off","context_length":9}`,
		`{"input":[{"type":"message","content":"a"},{"type":"image","data_url":"data:image/png;base64,`+pixel+`"}],"temperature":0.5,"top_k":1e2}`,
		`{"input":[{"type":"image","data_url":"data:image/\";base64,AAEC"}],"stop":["a"],"seed":1}`,
		`{"input":"hi","preset":"p","max_output_tokens":1,"integrations":[1],"temperature":2}`,
	) {
		f.Add([]byte(body), true, true)
	}
	defaults := map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "max_tokens": json.RawMessage("7"), "system_prompt": json.RawMessage(`"Hi"`)}
	f.Fuzz(func(t *testing.T, raw []byte, vision, preset bool) {
		body, err := jsonbody.Scan(raw)
		if err == nil && preset {
			body, err = native.WithDefaults(body, "preset", defaults)
		}
		if err != nil {
			return
		}
		chat, err := native.ParseChat(body, "m", capsOf(request.Caps{Vision: vision, Reasoning: []string{"off", "on"}}))
		if err != nil {
			if err.Status() != 400 || err.EffectiveCode() == "" || err.Message == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		upstream, err := chat.Upstream([]translate.Item{chat.Input})
		if err != nil {
			t.Fatalf("the engine's request: %v", err)
		}
		sent := bytes.Join(llamaserver.Wire{}.Chat(upstream, &request.Chat{N: 1}, 0).Body, nil)
		if !json.Valid(sent) || len(gjson.GetBytes(sent, "messages").Array()) != 1 {
			t.Fatalf("sent: %s", sent)
		}
		_, input := native.Input([]translate.Item{chat.Input})
		var again []byte
		for i, item := range input {
			again = append(append(again, ",["[min(i, 1)^1]), item...)
		}
		same, err := native.ParseChat(scanned(t, `{"input":`+string(again)+`]}`), "m", capsOf(request.Caps{Vision: true}))
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(chat.Input, same.Input); diff != "" {
			t.Fatalf("(-said +told again):\n%s", diff)
		}
	})
}
