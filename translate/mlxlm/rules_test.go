package mlxlm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rules are what mlx_lm.server and the libraries behind it demand of a request. It doesn't say so to a client: most violations close
// the connection, and some end its generation for all clients.
type rules struct {
	path       string
	vocabulary int // 0 if unknown
}

// number is a field's range. The server takes a whole number for a fraction, unless it insists on one; never the other way round.
type number struct {
	least, most float64
	kind        string // "", "whole" or "fraction"
}

var numbers = map[string]number{
	"max_tokens": {1, 1<<31 - 1, "whole"}, "top_k": {0, 1<<31 - 1, "whole"}, "seed": {0, 1<<32 - 2, "whole"},
	"temperature": {0, 100, ""}, "top_p": {0, 1, ""}, "min_p": {0, 1, ""},
	"repetition_penalty": {1e-3, 100, ""}, "presence_penalty": {-100, 100, ""}, "frequency_penalty": {-100, 100, ""},
	"repetition_context_size": {0, 1<<31 - 1, "whole"}, "presence_context_size": {0, 1<<31 - 1, "whole"}, "frequency_context_size": {0, 1<<31 - 1, "whole"},
	"xtc_probability": {0, 1, "fraction"}, "xtc_threshold": {0, 0.5, "fraction"}, // the sampler wants at most 0.5
}

// check returns what breaks the rules.
func (r rules) check(body []byte) error {
	if !utf8.Valid(body) || !json.Valid(body) {
		return fmt.Errorf("no JSON in UTF-8")
	}
	if half.Match(body) {
		return fmt.Errorf("half a surrogate pair, which the tokenizer can't encode")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return err
	}
	if err := tidyNumbers(fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := r.field(name, fields[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	required := []string{"model", "stream", "stream_options", "max_tokens", map[string]string{"/v1/chat/completions": "messages", "/v1/completions": "prompt"}[r.path]}
	for _, name := range required {
		if fields[name] == nil {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

// half matches the escape of half a surrogate pair; whole ones aren't escaped.
var half = regexp.MustCompile(`(?i)(?:^|[^\\])(?:\\\\)*\\ud[89a-f]`)

// tidyNumbers refuses numbers that Python doesn't read.
func tidyNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		if len(v) > 100 {
			return fmt.Errorf("a number of %d characters", len(v))
		}
		_, err := v.Float64()
		return err
	case map[string]any:
		for _, inner := range v {
			if err := tidyNumbers(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := tidyNumbers(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r rules) field(name string, v any) error {
	if n, ok := numbers[name]; ok {
		return n.check(v, name == "top_k", r.vocabulary)
	}
	switch name {
	case "model":
		return want(v == "default_model", v)
	case "stream":
		return want(v == true, v)
	case "stream_options":
		options, ok := v.(map[string]any)
		return want(ok && len(options) == 1 && options["include_usage"] == true, v)
	case "prompt":
		text, ok := v.(string)
		return want(ok && text != "", v)
	case "messages":
		return messagesRule(v)
	case "tools":
		return toolsRule(v)
	case "chat_template_kwargs":
		return templateRule(v)
	case "logit_bias":
		return r.biasRule(v)
	default:
		return fmt.Errorf("is unknown")
	}
}

func want(ok bool, v any) error {
	if !ok {
		return fmt.Errorf("is %v", v)
	}
	return nil
}

func (n number) check(v any, isTopK bool, vocabulary int) error {
	raw, ok := v.(json.Number)
	if !ok {
		return fmt.Errorf("is no number: %v", v)
	}
	isWhole := !strings.ContainsAny(string(raw), ".eE")
	x, err := raw.Float64()
	switch {
	case err != nil:
		return err
	case n.kind == "whole" && !isWhole, n.kind == "fraction" && isWhole:
		return fmt.Errorf("%s is no %s number", raw, n.kind)
	case x < n.least || x > n.most:
		return fmt.Errorf("%s is out of range", raw)
	case isTopK && x > 0 && vocabulary > 0 && x >= float64(vocabulary):
		return fmt.Errorf("%s of %d tokens", raw, vocabulary)
	case isTopK && vocabulary == 0 && x > 1000:
		return fmt.Errorf("%s of an unknown number of tokens", raw)
	default:
		return nil
	}
}

// messagesRule checks what templates may rely on. A message of the assistant at the end would get another answer after it.
func messagesRule(v any) error {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return fmt.Errorf("are none")
	}
	for i, m := range list {
		message, ok := m.(map[string]any)
		if !ok {
			return fmt.Errorf("%d is %v", i, m)
		}
		if role := message["role"]; !slices.Contains([]any{"system", "user", "assistant", "tool"}, role) || i == len(list)-1 && role == "assistant" {
			return fmt.Errorf("%d has the role %v", i, role)
		}
		for name, v := range message {
			if _, isText := v.(string); !isText && name != "tool_calls" || !slices.Contains([]string{"role", "content", "name", "tool_call_id", "reasoning_content", "tool_calls"}, name) {
				return fmt.Errorf("%d has %s: %v", i, name, v)
			}
		}
		if _, ok := message["content"]; !ok {
			return fmt.Errorf("%d has no content", i)
		}
		if err := callsRule(message["tool_calls"]); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

// callsRule checks earlier calls, whose arguments the server parses.
func callsRule(v any) error {
	if v == nil {
		return nil
	}
	calls, ok := v.([]any)
	if !ok || len(calls) == 0 {
		return fmt.Errorf("calls are %v", v)
	}
	for _, c := range calls {
		call, _ := c.(map[string]any)
		function, _ := call["function"].(map[string]any)
		_, hasName := function["name"].(string)
		text, _ := function["arguments"].(string)
		if !hasName || call["type"] != "function" {
			return fmt.Errorf("a call is %v", c)
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var arguments map[string]any
		if err := decoder.Decode(&arguments); err != nil || half.MatchString(text) {
			return fmt.Errorf("arguments %q: %w", text, err)
		}
		if err := tidyNumbers(arguments); err != nil {
			return err
		}
	}
	return nil
}

func toolsRule(v any) error {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return fmt.Errorf("are none")
	}
	for _, t := range list {
		tool, _ := t.(map[string]any)
		function, _ := tool["function"].(map[string]any)
		if name, _ := function["name"].(string); name == "" || tool["type"] != "function" {
			return fmt.Errorf("are %v", v)
		}
	}
	return nil
}

// templateRule checks values for the template. The names are those of the parameters of apply_chat_template and of what it calls.
func templateRule(v any) error {
	values, ok := v.(map[string]any)
	if !ok || len(values) == 0 {
		return fmt.Errorf("are %v", v)
	}
	for name, v := range values {
		if v == nil {
			return fmt.Errorf("has null for %s", name)
		}
		switch name {
		case "conversation", "conversations", "tools", "chat_template", "add_generation_prompt", "continue_final_message", "tokenize", "padding", "truncation",
			"max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs", "self":
			return fmt.Errorf("has %s", name)
		}
	}
	return nil
}

// biasRule checks the ids, which are written to without a check.
func (r rules) biasRule(v any) error {
	biases, ok := v.(map[string]any)
	if !ok || len(biases) == 0 {
		return fmt.Errorf("are %v", v)
	}
	for key, bias := range biases {
		id, err := strconv.Atoi(key)
		raw, isNumber := bias.(json.Number)
		x, _ := raw.Float64()
		if err != nil || strconv.Itoa(id) != key || id < 0 || id >= max(1, r.vocabulary) || !isNumber || x < -65504 || x > 65504 {
			return fmt.Errorf("%s: %v", key, bias)
		}
	}
	return nil
}
