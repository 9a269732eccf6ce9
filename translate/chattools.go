package translate

import (
	"strings"

	"github.com/tidwall/gjson"
)

// parseTools reads which tools may be called. The engine knows of tool_choice only the words: a choice that names functions
// is made by giving the model no others.
func (c *Chat) parseTools(body *Body) *Error {
	parallel := body.Value("parallel_tool_calls")
	c.SingleCall = string(parallel) == "false"
	choice := gjson.ParseBytes(body.Value("tool_choice"))
	if choice.IsObject() {
		return c.chooseTools(body, choice)
	}
	switch choice.Str {
	case "", "auto":
		return nil
	case "none":
		// The engine would still describe them to the model, and leave the calls that it makes in the text.
		c.edit.Remove("tools")
		return nil
	case "required":
		if len(gjson.ParseBytes(body.Value("tools")).Array()) == 0 {
			return Invalid("invalid_value", "tool_choice", `"tool_choice" is "required", but there are no "tools" to call.`)
		}
		return nil
	default:
		return Invalid("invalid_value", "tool_choice",
			`"tool_choice" must be "none", "auto", "required", or an object that names a function, not "`+choice.Str+`".`)
	}
}

// chooseTools reads the forms {"type":"function","function":{"name":…}} and
// {"type":"allowed_tools","allowed_tools":{"mode":"auto"|"required","tools":[…]}}.
func (c *Chat) chooseTools(body *Body, choice gjson.Result) *Error {
	var wanted []gjson.Result
	mode := "required"
	switch choice.Get("type").Str {
	case "function":
		wanted = []gjson.Result{choice}
	case "allowed_tools":
		allowed := choice.Get("allowed_tools")
		wanted, mode = allowed.Get("tools").Array(), allowed.Get("mode").Str
		if mode != "auto" && mode != "required" {
			return Invalid("invalid_value", "tool_choice", `"tool_choice.allowed_tools.mode" must be "auto" or "required".`)
		}
	default:
		return Invalid("invalid_value", "tool_choice", `The "type" of "tool_choice" must be "function" or "allowed_tools".`)
	}
	names := map[string]bool{}
	for _, w := range wanted {
		names[w.Get("function.name").Str] = true
	}
	kept := []byte{'['}
	var offered []string
	for _, tool := range gjson.ParseBytes(body.Value("tools")).Array() {
		name := tool.Get("function.name").Str
		offered = append(offered, name)
		if names[name] {
			kept = append(appendComma(kept), tool.Raw...)
			names[name] = false
		}
	}
	for _, w := range wanted {
		if name := w.Get("function.name").Str; names[name] || name == "" {
			return unknownTool(name, offered)
		}
	}
	if len(kept) == 1 {
		return Invalid("invalid_value", "tool_choice", `"tool_choice" allows no tools: use "none" to have none called.`)
	}
	c.edit.Set("tools", string(append(kept, ']')))
	c.edit.Set("tool_choice", `"`+mode+`"`)
	return nil
}

func unknownTool(name string, offered []string) *Error {
	if name == "" {
		return Invalid("invalid_value", "tool_choice", `"tool_choice" must name a function: {"type":"function","function":{"name":"…"}}.`)
	}
	have := "there are no tools"
	if len(offered) > 0 {
		have = "the tools are: " + strings.Join(offered, ", ")
	}
	return Invalid("invalid_value", "tool_choice", `"tool_choice" names the function "`+name+`", but `+have+`.`)
}
