package translate

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestBody_WithDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": json.RawMessage("0.2"), "max_tokens": json.RawMessage("50"), "system_prompt": json.RawMessage(`"Be brief."`),
	}
	for name, tt := range map[string]struct{ body, want string }{
		"all":            {`{"preset":"p","messages":[{"role":"user"}]}`, `{"messages":[{"role":"system","content":"Be brief."},{"role":"user"}],"max_tokens":50,"temperature":0.2}`},
		"its own":        {`{"temperature":1,"preset":"p","max_tokens":2}`, `{"temperature":1,"max_tokens":2}`},
		"another name":   {`{"preset":"p","max_completion_tokens":2}`, `{"max_completion_tokens":2,"temperature":0.2}`},
		"null":           {`{"preset":"p","temperature":null}`, `{"temperature":0.2,"max_tokens":50}`},
		"own system":     {`{"preset":"p","messages":[{"role":"system"}]}`, `{"messages":[{"role":"system"}],"max_tokens":50,"temperature":0.2}`},
		"developer":      {`{"preset":"p","messages":[{"role":"developer"}]}`, `{"messages":[{"role":"developer"}],"max_tokens":50,"temperature":0.2}`},
		"no messages":    {`{"preset":"p","prompt":"x"}`, `{"prompt":"x","max_tokens":50,"temperature":0.2}`},
		"empty messages": {`{"preset":"p","messages":[ ]}`, `{"messages":[{"role":"system","content":"Be brief."}],"max_tokens":50,"temperature":0.2}`},
		"odd messages":   {`{"preset":"p","messages":{}}`, `{"messages":{},"max_tokens":50,"temperature":0.2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := WithDefaults(scanned(t, tt.body), "preset", defaults)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

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
		body, err := Scan(raw)
		if err != nil {
			return
		}
		if preset {
			if body, err = WithDefaults(body, "preset", defaults); err != nil {
				return // our limits
			}
		}
		chat, err := ParseChat(body, Caps{Vision: vision})
		if err != nil {
			if err.Status() != 400 || err.Code == "" || err.Message == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		sent := bytes.Join(LlamaServer{}.Chat(body, chat, 1), nil)
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

func TestBody_WithNativeDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": json.RawMessage("0.2"), "max_tokens": json.RawMessage("50"), "system_prompt": json.RawMessage(`"Be brief."`),
		"stop": json.RawMessage(`["x"]`),
	}
	for name, tt := range map[string]struct{ body, want string }{
		"all":         {`{"preset":"p","input":"a"}`, `{"input":"a","max_output_tokens":50,"stop":["x"],"system_prompt":"Be brief.","temperature":0.2}`},
		"its own":     {`{"temperature":1,"preset":"p","max_output_tokens":2,"system_prompt":"","stop":"y"}`, `{"temperature":1,"max_output_tokens":2,"system_prompt":"","stop":"y"}`},
		"null":        {`{"preset":"p","temperature":null,"system_prompt":null}`, `{"temperature":0.2,"system_prompt":"Be brief.","max_output_tokens":50,"stop":["x"]}`},
		"going on":    {`{"preset":"p","previous_response_id":"resp_1"}`, `{"previous_response_id":"resp_1","max_output_tokens":50,"stop":["x"],"temperature":0.2}`},
		"not really":  {`{"preset":"p","previous_response_id":null,"stop":1,"temperature":1}`, `{"previous_response_id":null,"stop":1,"temperature":1,"max_output_tokens":50,"system_prompt":"Be brief."}`},
		"other names": {`{"preset":"p","max_tokens":2,"stop":1,"temperature":1,"system_prompt":"s"}`, `{"max_tokens":2,"stop":1,"temperature":1,"system_prompt":"s","max_output_tokens":50}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := WithNativeDefaults(scanned(t, tt.body), "preset", defaults)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	both := map[string]json.RawMessage{"max_tokens": json.RawMessage("1"), "max_completion_tokens": json.RawMessage("2"), "max_output_tokens": json.RawMessage("3")}
	for want, leftOut := range map[string]string{`{"max_output_tokens":3}`: "", `{"max_output_tokens":2}`: "max_output_tokens"} {
		delete(both, leftOut)
		got, err := WithNativeDefaults(scanned(t, `{}`), "preset", both)
		if err != nil || string(got.Raw) != want {
			t.Errorf("%s, %v, want %s", got.Raw, err, want)
		}
		both["max_output_tokens"] = json.RawMessage("3")
	}
}
