package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxTools bounds the tools of one request.
const maxTools = 1024

// chatTool is a tool of a request.
type chatTool struct {
	name       string
	definition string // what is known of it
	parameters string // the schema of its arguments; empty: none is known
}

// parseTools reads which tools may be called. The engine knows of tool_choice only the words: a choice that names functions
// is made by giving the model no others.
func (c *chatParser) parseTools(body *Body) *Error {
	c.SingleCall = string(body.Value("parallel_tool_calls")) == "false"
	tools, err := readTools(body.Get("tools"))
	if err != nil {
		return err
	}
	if len(tools) > 0 && body.Get("grammar").Str != "" {
		return Invalid("invalid_value", "grammar", `"grammar" and "tools" can't be combined: leave out one of them.`)
	}
	choice := body.Get("tool_choice")
	if choice.IsObject() {
		return c.chooseTools(body, tools, choice)
	}
	switch choice.Str {
	case "", "auto":
	case "none":
		// The engine would still describe them to the model, and leave the calls that it makes in the text.
		tools = nil
	case "required":
		if len(tools) == 0 {
			return Invalid("invalid_value", "tool_choice", `"tool_choice" is "required", but there are no "tools" to call.`)
		}
	default:
		return Invalid("invalid_value", "tool_choice",
			`"tool_choice" must be "none", "auto", "required", or an object that names a function, not "`+choice.Str+`".`)
	}
	return c.offer(body, tools, choice.Str)
}

// offer tells the engine of tools, and whether one must be called.
func (c *chatParser) offer(body *Body, tools []chatTool, mode string) *Error {
	c.edit.Remove("tool_choice")
	if len(tools) == 0 {
		c.edit.Remove("tools")
		return nil
	}
	all := []byte{'['}
	for _, tool := range tools {
		all = append(appendComma(all), tool.definition...)
	}
	c.edit.Set("tools", string(append(all, ']')))
	if string(body.Value("logprobs")) == "true" { // the engine, too, but only once it is loaded
		return Invalid("invalid_value", "logprobs", `"logprobs" and "tools" can't be combined: leave out one of them, or set "tool_choice" to "none".`)
	}
	if mode != "required" {
		return nil
	}
	if n := len(body.messages); n > 0 && roleOf(body, n-1) == "assistant" {
		return Invalid("invalid_value", "tool_choice",
			`"tool_choice" demands a call, but the last of the "messages" begins another answer: leave out that message, or set "tool_choice" to "auto".`)
	}
	c.Forced = true
	c.edit.Set("response_format", forcedFormat(tools))
	if TokenLimit(body) < 0 {
		c.limit = maxForcedTokens
		c.LimitTokens(maxForcedTokens)
	}
	return nil
}

// readTools reads the tools' definitions.
func readTools(v gjson.Result) ([]chatTool, *Error) {
	if v.Type == gjson.Null {
		return nil, nil
	}
	items := v.Array()
	if len(items) > maxTools {
		return nil, Invalid("invalid_value", "tools", `"tools" must hold at most `+strconv.Itoa(maxTools)+` tools.`)
	}
	tools := make([]chatTool, len(items))
	var work schemaWork
	for i, item := range items {
		var err *Error
		if tools[i], err = readTool("tools["+strconv.Itoa(i)+"]", item, &work); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

func readTool(path string, tool gjson.Result, work *schemaWork) (chatTool, *Error) {
	function := tool.Get("function")
	name, description, parameters := function.Get("name"), function.Get("description"), function.Get("parameters")
	switch kind := tool.Get("type"); {
	case !tool.IsObject():
		return chatTool{}, wrongType(path, "an object", tool)
	case kind.Type != gjson.Null && kind.Str != "function":
		return chatTool{}, Invalid("invalid_value", path+".type", `"`+path+`.type" must be "function": this server runs no other tools.`)
	case function.Type == gjson.Null:
		return chatTool{}, Missing(path + ".function")
	case !function.IsObject():
		return chatTool{}, wrongType(path+".function", "an object", function)
	case name.Type != gjson.String || name.Str == "":
		return chatTool{}, Missing(path + ".function.name")
	case len(name.Str) > maxNameLength:
		return chatTool{}, Invalid("invalid_value", path+".function.name", `"`+path+`.function.name" must have at most `+strconv.Itoa(maxNameLength)+` bytes.`)
	case description.Type != gjson.String && description.Type != gjson.Null:
		return chatTool{}, wrongType(path+".function.description", "a string", description)
	case parameters.Type != gjson.Null && !parameters.IsObject():
		return chatTool{}, wrongType(path+".function.parameters", "an object", parameters)
	}
	out := appendString([]byte(`{"type":"function","function":{"name":`), name.Str)
	if description.Str != "" {
		out = append(append(out, `,"description":`...), description.Raw...)
	}
	if parameters = withoutNulls(parameters); parameters.IsObject() {
		if err := work.check(path+".function.parameters", parameters); err != nil {
			return chatTool{}, err
		}
		if kind := parameters.Get("type"); !isOfObjects(kind) {
			return chatTool{}, Invalid("invalid_schema", path+".function.parameters", `The "type" of "`+path+`.function.parameters" must be "object", not `+quoteShort(kind.String())+`.`)
		}
		out = append(append(out, `,"parameters":`...), parameters.Raw...)
	}
	return chatTool{name.Str, string(append(out, `}}`...)), parameters.Raw}, nil
}

// isOfObjects tells whether a schema of that type is one of arguments, which are an object.
func isOfObjects(kind gjson.Result) bool {
	if !kind.IsArray() {
		return kind.Type == gjson.Null || kind.Str == "object"
	}
	return slices.ContainsFunc(kind.Array(), func(one gjson.Result) bool { return one.Str == "object" })
}

// chooseTools reads the forms {"type":"function","function":{"name":…}} and
// {"type":"allowed_tools","allowed_tools":{"mode":"auto"|"required","tools":[…]}}.
func (c *chatParser) chooseTools(body *Body, tools []chatTool, choice gjson.Result) *Error {
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
	var kept []chatTool
	var offered []string
	for _, tool := range tools {
		offered = append(offered, tool.name)
		if names[tool.name] {
			kept = append(kept, tool)
			names[tool.name] = false
		}
	}
	for _, w := range wanted {
		if name := w.Get("function.name").Str; names[name] || name == "" {
			return unknownTool(name, offered)
		}
	}
	if len(kept) == 0 {
		return Invalid("invalid_value", "tool_choice", `"tool_choice" allows no tools: use "none" to have none called.`)
	}
	return c.offer(body, kept, mode)
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
