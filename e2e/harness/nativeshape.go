package harness

import (
	"fmt"
	"regexp"

	"github.com/tidwall/gjson"
)

// nativeFields are the fields of each event, besides its type.
var nativeFields = map[string]shape{
	"chat.start":                 {"model_instance_id": filled},
	"model_load.start":           {"model_instance_id": filled},
	"model_load.progress":        {"model_instance_id": filled, "progress": fraction},
	"model_load.end":             {"model_instance_id": filled, "load_time_seconds": number},
	"prompt_processing.start":    {},
	"prompt_processing.progress": {"progress": fraction},
	"prompt_processing.end":      {},
	"reasoning.start":            {},
	"reasoning.delta":            {"content": filled},
	"reasoning.end":              {},
	"tool_call.start":            {"tool": filled, "provider_info": provider},
	"tool_call.arguments":        {"tool": filled, "arguments": anyObject, "provider_info": provider},
	"tool_call.success":          {"tool": filled, "arguments": anyObject, "output": text, "is_error?": boolean, "provider_info": provider},
	"tool_call.failure":          {"reason": filled, "metadata": failure},
	"message.start":              {},
	"message.delta":              {"content": filled},
	"message.end":                {},
	"error":                      {"error": fault},
	"chat.end":                   {"result": result},
}

var (
	pluginShape    = shape{"type": oneOf("plugin"), "plugin_id": filled}
	ephemeralShape = shape{"type": oneOf("ephemeral_mcp"), "server_label": filled}
	badNameShape   = shape{"type": oneOf("invalid_name"), "tool_name": text}
	badCallShape   = shape{"type": oneOf("invalid_arguments"), "tool_name": filled, "arguments": anyObject, "provider_info": provider}
	faultShape     = shape{
		"type": oneOf("invalid_request", "unknown", "mcp_connection_error", "plugin_connection_error", "not_implemented", "model_not_found",
			"job_not_found", "internal_error"),
		"message": filled, "code?": filled, "param?": filled,
	}
	statsShape = shape{
		"input_tokens": whole, "total_output_tokens": whole, "reasoning_output_tokens": whole, "tokens_per_second": number,
		"time_to_first_token_seconds": number, "model_load_time_seconds?": number, "context_length?": whole,
	}
)

func provider(v gjson.Result) error {
	if v.Get("type").Str == "plugin" {
		return pluginShape.check(v)
	}
	return ephemeralShape.check(v)
}

func failure(v gjson.Result) error {
	if v.Get("type").Str == "invalid_name" {
		return badNameShape.check(v)
	}
	return badCallShape.check(v)
}

func fault(v gjson.Result) error { return faultShape.check(v) }

func result(v gjson.Result) error {
	return shape{"model_instance_id": filled, "output": outputs, "stats": stats, "response_id?": responseID, "status?": oneOf("incomplete")}.check(v)
}

func stats(v gjson.Result) error {
	if err := statsShape.check(v); err != nil {
		return err
	}
	if v.Get("reasoning_output_tokens").Num > v.Get("total_output_tokens").Num {
		return fmt.Errorf("more reasoning than output: %s", v.Raw)
	}
	return nil
}

var responseIDs = regexp.MustCompile(`^resp_[0-9a-f]{48}$`)

func responseID(v gjson.Result) error {
	if v.Type != gjson.String || !responseIDs.MatchString(v.Str) {
		return fmt.Errorf("%s is no id of a response", v.Raw)
	}
	return nil
}

// outputShapes are the items of an output, by their types.
var outputShapes = map[string]shape{
	"message":           {"type": text, "content": filled},
	"reasoning":         {"type": text, "content": filled},
	"tool_call":         {"type": text, "tool": filled, "arguments": anyObject, "output": text, "is_error?": boolean, "provider_info": provider},
	"invalid_tool_call": {"type": text, "reason": filled, "metadata": failure},
}

func outputs(v gjson.Result) error {
	if !v.IsArray() {
		return fmt.Errorf("%s is no array", v.Raw)
	}
	for i, item := range v.Array() {
		s, ok := outputShapes[item.Get("type").Str]
		if !ok {
			return fmt.Errorf("item %d has no such type: %s", i, item.Raw)
		}
		if err := s.check(item); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}
