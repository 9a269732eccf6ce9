package fakemlx

import (
	"encoding/json"
	"fmt"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// isList reports whether the prompt of a completion is a list of texts.
func (q *ask) isList() bool {
	_, ok := q.prompt.([]any)
	return ok && !q.chat
}

// tokens cuts the prompt into tokens, which are words here. An error is answered with 404.
func (q *ask) tokens() ([]string, error) {
	if q.lone {
		return nil, raise("TypeError", "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]")
	}
	if !q.chat {
		switch prompt := q.prompt.(type) {
		case string:
			return fakekit.Words(prompt), nil
		case []any:
			for _, item := range prompt {
				if _, ok := item.(string); !ok {
					return nil, errNoText
				}
			}
			return nil, nil // it is found out later what that is
		}
		return nil, errNoText
	}
	if text, ok := q.prompt.(string); ok && text != "" {
		return nil, raise("AttributeError", "'str' object has no attribute 'get'")
	}
	if q.messages == nil {
		return nil, raise("TypeError", "'%s' object is not iterable", pythonType(q.prompt))
	}
	if len(q.messages) == 0 {
		return nil, raise("IndexError", "list index out of range")
	}
	if err := q.checkTemplateArgs(); err != nil {
		return nil, err
	}
	var all []string
	if tools, _ := q.body["tools"].([]any); len(tools) > 0 {
		text, err := json.Marshal(tools)
		if err != nil {
			return nil, fmt.Errorf("encoding the tools: %w", err)
		}
		all = append(all, fakekit.Words("<tools> "+string(text)+" </tools>")...)
	}
	for _, m := range q.messages {
		words, err := messageTokens(m)
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
	}
	return append(all, "<|im_start|>assistant"), nil
}

var errNoText = raise("ValueError", "text input must be of type `str` (single example), `list[str]` (batch or single pretokenized "+
	"example) or `list[list[str]]` (batch of pretokenized examples) or `list[tuple[list[str], list[str]]]` (batch of pretokenized sequence pairs).")

// checkTemplateArgs is why the chat template can't be called, or nil.
func (q *ask) checkTemplateArgs() error {
	switch tools := q.body["tools"].(type) {
	case json.Number:
		if number(tools) != 0 {
			return raise("TypeError", "'%s' object is not iterable", pythonType(tools))
		}
	case string:
		if tools != "" {
			return errNoTool
		}
	case map[string]any:
		if len(tools) > 0 {
			return errNoTool
		}
	case []any:
		for _, tool := range tools {
			if _, ok := tool.(map[string]any); !ok {
				return errNoTool
			}
		}
	}
	switch options := q.body["chat_template_kwargs"].(type) {
	case string:
		if options != "" {
			return raise("ValueError", "dictionary update sequence element #0 has length 1; 2 is required")
		}
	case json.Number:
		if number(options) != 0 {
			return raise("TypeError", "'%s' object is not iterable", pythonType(options))
		}
	case map[string]any:
		for _, name := range []string{"tokenize", "tools"} {
			if _, ok := options[name]; ok {
				return raise("TypeError", "dict() got multiple values for keyword argument '%s'", name)
			}
		}
	}
	return nil
}

var errNoTool = raise("ValueError", "Tools should either be a JSON schema, or a callable function with type hints and a docstring suitable "+
	"for auto-conversion to a schema.")

// messageTokens makes tokens of a message: two and its words.
func messageTokens(m any) ([]string, error) {
	message, ok := m.(map[string]any)
	if !ok {
		return nil, raise("AttributeError", "'%s' object has no attribute 'get'", pythonType(m))
	}
	var text string
	switch content := message["content"].(type) {
	case string:
		text = content
	case []any:
		for _, p := range content {
			part, ok := p.(map[string]any)
			if !ok {
				return nil, raise("TypeError", "string indices must be integers, not 'str'")
			}
			kind, ok := part["type"]
			if !ok {
				return nil, raise("KeyError", "'type'")
			}
			if kind != "text" {
				return nil, raise("ValueError", "Only 'text' content type is supported.")
			}
			words, ok := part["text"].(string)
			if !ok {
				return nil, raise("KeyError", "'text'")
			}
			text += words
		}
	}
	calls, ok := message["tool_calls"].([]any)
	if text, _ := message["tool_calls"].(string); !ok && text != "" {
		return nil, raise("AttributeError", "'str' object has no attribute 'get'")
	}
	for _, c := range calls {
		call, _ := c.(map[string]any)
		function, _ := call["function"].(map[string]any)
		switch arguments := function["arguments"].(type) {
		case nil:
		case string:
			if arguments == "" {
				break
			}
			if _, err := loads([]byte(arguments)); err != nil {
				return nil, err
			}
			text += " " + arguments
		default:
			return nil, raise("TypeError", "the JSON object must be str, bytes or bytearray, not %s", pythonType(arguments))
		}
	}
	role, ok := message["role"]
	if !ok {
		return nil, raise("KeyError", "'role'")
	}
	return append(fakekit.Words(fmt.Sprintf("<|im_start|>%v", role)), append(fakekit.Words(text), "<|im_end|>")...), nil
}
