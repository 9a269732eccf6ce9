package translate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// withoutNewer replaces what newer types, Open Responses and OpenAI's own answers have, but not the types from which the schemas are
// made: the usage is null until the end, the error of an MCP call is an object, the log probabilities in a stream have bytes, one more
// code of an error is in use, and the call of a custom tool has a status.
func withoutNewer(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if usage, ok := value["usage"]; ok && usage == nil {
			delete(value, "usage")
		}
		if failed, ok := value["error"].(map[string]any); ok && value["type"] == "mcp_call" {
			kind, _ := failed["type"].(string)
			value["error"] = kind
		}
		if value["code"] == "context_length_exceeded" && value["type"] == nil {
			value["code"] = "invalid_prompt"
		}
		if kind, _ := value["type"].(string); kind == "response.output_text.delta" || kind == "response.output_text.done" {
			for _, token := range value["logprobs"].([]any) {
				delete(token.(map[string]any), "bytes")
				for _, other := range token.(map[string]any)["top_logprobs"].([]any) {
					delete(other.(map[string]any), "bytes")
				}
			}
		}
		output, _ := value["output"].([]any)
		for _, item := range append(output, value["item"]) {
			if call, ok := item.(map[string]any); ok && call["type"] == "custom_tool_call" {
				delete(call, "status")
			}
		}
		for _, v := range value {
			withoutNewer(v)
		}
	case []any:
		for _, v := range value {
			withoutNewer(v)
		}
	}
	return value
}

// openResponses are the members that the types of Open Responses require of a response, with the JSON types that they allow.
var openResponses = map[string]string{
	"id": "s", "object": "s", "created_at": "n", "completed_at": "n0", "status": "s", "incomplete_details": "o0", "model": "s",
	"previous_response_id": "s0", "instructions": "s0", "output": "a", "error": "o0", "tools": "a", "tool_choice": "so", "truncation": "s",
	"parallel_tool_calls": "b", "text": "o", "top_p": "n", "presence_penalty": "n", "frequency_penalty": "n", "top_logprobs": "n",
	"temperature": "n", "reasoning": "o0", "usage": "o0", "max_output_tokens": "n0", "max_tool_calls": "n0", "store": "b",
	"background": "b", "service_tier": "s", "metadata": "o", "safety_identifier": "s0", "prompt_cache_key": "s0",
}

func checkOpenResponses(t *testing.T, response gjson.Result) {
	t.Helper()
	for name, allowed := range openResponses {
		v := response.Get(name)
		is := map[byte]bool{
			's': v.Type == gjson.String, 'n': v.Type == gjson.Number, 'b': v.IsBool(), 'o': v.IsObject(), 'a': v.IsArray(), '0': v.Exists() && v.Type == gjson.Null,
		}
		ok := false
		for i := range len(allowed) {
			ok = ok || is[allowed[i]]
		}
		if !ok {
			t.Errorf("%q is %q", name, v.Raw)
		}
	}
	for _, tool := range response.Get("tools").Array() {
		for _, name := range []string{"name", "description", "parameters", "strict"} {
			if tool.Get("type").Str == "function" && !tool.Get(name).Exists() {
				t.Errorf("%s has no %s", tool.Raw, name)
			}
		}
	}
}

// The transcripts of the Responses API match the published schemas, and those of Open Responses.
func TestPublished_Responses(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	checked := 0
	for _, tr := range transcriptsIn(t, filepath.Join("responses", "testdata")) {
		t.Run(tr.name, func(t *testing.T) {
			stream := tr.views["stream"]
			checked += all.checkStream(t, "openai", "responseEvent", stream)
			for _, event := range testkit.ResponsesEvents(stream) {
				if response := gjson.GetBytes(event, "response"); response.Exists() {
					checkOpenResponses(t, response)
					all.check(t, "openai response", []byte(response.Raw))
				}
			}
		})
	}
	if checked < 200 {
		t.Errorf("%d events", checked)
	}
}

// foreign are the kinds of items that only clients know, or OpenAI's own servers.
var foreign = map[string]bool{
	"agent_message": true, "context_compaction": true, "ghost_snapshot": true, "local_shell_call": true, "local_shell_call_output": true, "web_search_call": true,
}

// The errors, and the items of inputs, as GET /v1/responses/{id}/input_items has them, match the published schemas.
func TestPublished_ResponsesInputItems(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	golden, err := os.ReadFile(filepath.Join("responses", "testdata", "requests.golden"))
	if err != nil {
		t.Fatal(err)
	}
	all.check(t, "openai compacted", responses.AppendCompaction(nil, "resp_1", time.Unix(1, 0), []translate.Item{responses.SummaryItem("resp_1", "Hi")}, translate.Usage{}))
	checked := 0
	for line := range bytes.Lines(golden) {
		if refused, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("refused: ")); ok {
			all.check(t, "openai error", refused)
		}
		item, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("item: "))
		if kind := gjson.GetBytes(item, "type").Str; !ok || kind == "item_reference" || foreign[kind] { // references are replaced before anything is stored
			continue
		}
		checked++
		list, err := json.Marshal(map[string]any{"object": "list", "data": []json.RawMessage{item}, "first_id": "a", "last_id": "a", "has_more": false})
		if err != nil {
			t.Fatal(err)
		}
		all.check(t, "openai responseItems", list)
	}
	if checked < 50 {
		t.Errorf("%d items", checked)
	}
}
