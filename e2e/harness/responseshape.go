package harness

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
)

// CheckResponseBody checks a response object: it has the fields that the types of the official libraries and of Open Responses
// require, and no others, and they agree with each other.
func CheckResponseBody(body gjson.Result) error { return responseObject(body) }

// responseShape is the response object. Each field but the last is there always, also within events.
var responseShape = shape{
	"id": responseID, "object": oneOf("response"), "created_at": whole, "completed_at": orNull(whole), "status": responseStatus,
	"background": boolean, "store": boolean, "model": filled, "previous_response_id": orNull(responseID), "instructions": orNull(text),
	"output": responseOutput, "error": orNull(shape{"code": filled, "message": filled}.check),
	"incomplete_details": orNull(shape{"reason": oneOf("max_output_tokens", "content_filter")}.check),
	"tools":              arrayOf(anyObject), "tool_choice": stringOrObject, "parallel_tool_calls": boolean, "max_tool_calls": orNull(whole),
	"text":        func(v gjson.Result) error { return shape{"format": anyObject, "verbosity?": orNull(text)}.check(v) },
	"temperature": number, "top_p": fraction, "presence_penalty": anyNumber, "frequency_penalty": anyNumber, "top_logprobs": whole,
	"truncation": oneOf("auto", "disabled"), "max_output_tokens": orNull(whole), "service_tier": filled, "metadata": anyObject,
	"reasoning":         orNull(shape{"effort": orNull(filled), "summary": orNull(filled)}.check),
	"safety_identifier": orNull(text), "prompt_cache_key": orNull(text), "usage": orNull(responseUsage),
	"user?": orNull(text),
}

var responseStatus = oneOf("queued", "in_progress", "completed", "incomplete", "failed", "cancelled")

func responseObject(v gjson.Result) error {
	if err := responseShape.check(v); err != nil {
		return err
	}
	status := v.Get("status").Str
	for field, of := range map[string]string{"completed_at": "completed", "incomplete_details": "incomplete", "error": "failed"} {
		if isSet := v.Get(field).Type != gjson.Null; isSet != (status == of) {
			return fmt.Errorf("a response that is %s has the %s %s", status, field, v.Get(field).Raw)
		}
	}
	isRunning := status == "queued" || status == "in_progress"
	hasUsage := v.Get("usage").Type != gjson.Null
	if isRunning && hasUsage || !hasUsage && (status == "completed" || status == "incomplete") {
		return fmt.Errorf("a response that is %s has the usage %s", status, v.Get("usage").Raw)
	}
	return ownItems(v)
}

// ownItems checks that the ids of a response's items are its own, and unique.
func ownItems(response gjson.Result) error {
	seen := map[string]bool{}
	own := strings.TrimPrefix(response.Get("id").Str, "resp_")
	for _, item := range response.Get("output").Array() {
		id := item.Get("id").Str
		if seen[id] {
			return fmt.Errorf("two items have the id %s", id)
		}
		if !strings.Contains(id, own) {
			return fmt.Errorf("the item %s isn't of %s", id, response.Get("id").Str)
		}
		seen[id] = true
	}
	return nil
}

func responseUsage(v gjson.Result) error {
	err := shape{
		"input_tokens": whole, "input_tokens_details": shape{"cached_tokens": whole, "cache_write_tokens?": whole}.check,
		"output_tokens": whole, "output_tokens_details": shape{"reasoning_tokens": whole}.check, "total_tokens": whole,
	}.check(v)
	in, out := v.Get("input_tokens").Int(), v.Get("output_tokens").Int()
	switch {
	case err != nil:
		return err
	case v.Get("total_tokens").Int() != in+out:
		return fmt.Errorf("the total isn't the sum: %s", v.Raw)
	case v.Get("output_tokens_details.reasoning_tokens").Int() > out:
		return fmt.Errorf("more reasoning than output: %s", v.Raw)
	case v.Get("input_tokens_details.cached_tokens").Int() > in:
		return fmt.Errorf("more cached than read: %s", v.Raw)
	}
	return nil
}

func responseFault(v gjson.Result) error {
	return shape{"type": filled, "code": orNull(filled), "message": filled, "param": orNull(filled)}.check(v)
}

// itemShapes are the items of an output, by their types. Clients reject nulls of the optional fields.
var itemShapes = map[string]shape{
	"message": {
		"id": itemID("msg_"), "type": text, "role": oneOf("assistant"), "status": itemStatus, "content": arrayOf(partOf("output_text")),
		"phase?": filled,
	},
	"reasoning": {
		"id": itemID("rs_"), "type": text, "summary": arrayOf(anyObject), "content": arrayOf(partOf("reasoning_text")), "status": itemStatus,
		"encrypted_content?": orNull(text),
	},
	"function_call": {
		"id": itemID("fc_"), "type": text, "call_id": filled, "name": filled, "arguments": text, "status": itemStatus,
	},
	"custom_tool_call": {
		"id": itemID("ctc_"), "type": text, "call_id": filled, "name": filled, "input": text, "status": itemStatus,
	},
	"mcp_list_tools": {
		"id": itemID("mcpl_"), "type": text, "server_label": filled, "tools": arrayOf(listedTool.check), "error?": filled,
	},
	"mcp_call": {
		"id": itemID("mcp_"), "type": text, "server_label": filled, "name": filled, "arguments": text, "output": orNull(text),
		"error": orNull(callError), "status": oneOf("in_progress", "calling", "completed", "incomplete", "failed"), "approval_request_id": orNull(filled),
	},
}

var (
	itemStatus = oneOf("in_progress", "completed", "incomplete")
	listedTool = shape{"name": filled, "input_schema": anyObject, "description?": filled, "annotations?": anyObject}
)

func responseItem(v gjson.Result) error {
	s, ok := itemShapes[v.Get("type").Str]
	if !ok {
		return fmt.Errorf("no such item: %s", v.Raw)
	}
	return s.check(v)
}

func responseOutput(v gjson.Result) error {
	if err := arrayOf(responseItem)(v); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

func callError(v gjson.Result) error {
	coded := shape{"type": text, "code": anyNumber, "message": filled}
	switch kind := v.Get("type").Str; kind {
	case "mcp_tool_execution_error":
		return shape{"type": text, "content": arrayOf(anyObject)}.check(v)
	case "mcp_protocol_error", "http_error":
		return coded.check(v)
	default:
		return fmt.Errorf("no such error of a call: %s", v.Raw)
	}
}

func responsePart(v gjson.Result) error {
	if kind := v.Get("type").Str; kind == "reasoning_text" {
		return shape{"type": text, "text": text}.check(v)
	}
	return shape{"type": oneOf("output_text"), "text": text, "annotations": arrayOf(anyObject), "logprobs": logprobs}.check(v)
}

func partOf(kind string) check {
	return func(v gjson.Result) error {
		if got := v.Get("type").Str; got != kind {
			return fmt.Errorf("a part is %q, want %q", got, kind)
		}
		return responsePart(v)
	}
}

func logprobs(v gjson.Result) error {
	top := shape{"token": text, "logprob": anyNumber, "bytes?": arrayOf(whole)}
	token := shape{"token": text, "logprob": anyNumber, "bytes?": arrayOf(whole), "top_logprobs": arrayOf(top.check)}
	return arrayOf(token.check)(v)
}

var itemIDs = regexp.MustCompile(`^[a-z]+_[0-9a-f]{48}[0-9a-z_]*$`)

func itemID(prefix string) check {
	return func(v gjson.Result) error {
		if !strings.HasPrefix(v.Str, prefix) || !itemIDs.MatchString(v.Str) {
			return fmt.Errorf("%s is no id with %s", v.Raw, prefix)
		}
		return nil
	}
}
