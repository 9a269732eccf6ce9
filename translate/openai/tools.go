package openai

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// parseTools parses the tools and which of them may be called. Engines support only the words of tool_choice, so a choice by
// name is implemented by leaving out the other tools.
func (c *chatParser) parseTools(body *jsonbody.Body) *translate.Error {
	c.SingleCall = string(body.Value("parallel_tool_calls")) == "false"
	tools, err := request.ReadTools(body.Get("tools"), readTool)
	if err != nil {
		return err
	}
	if len(tools) > 0 && c.hasGrammar(body) {
		return translate.BadValue("grammar", `and "tools" can't be combined: leave out one of them.`)
	}
	choice := body.Get("tool_choice")
	if choice.IsObject() {
		return c.chooseTools(body, tools, choice)
	}
	switch choice.Str {
	case "", "auto":
	case "none":
		// An engine would describe them to the model, and leave its calls in the text.
		tools = nil
	case "required":
		if len(tools) == 0 {
			return translate.BadValue("tool_choice", `is "required", but there are no "tools" to call.`)
		}
	default:
		return translate.BadValue("tool_choice",
			`must be "none", "auto", "required", or an object that names a function, not "%s".`, choice.Str)
	}
	return c.offer(body, tools, choice.Str)
}

func (c *chatParser) offer(body *jsonbody.Body, tools []request.Tool, mode string) *translate.Error {
	c.Edit.Remove("tool_choice")
	if len(tools) == 0 {
		c.Edit.Remove("tools")
		return nil
	}
	for _, tool := range tools {
		if tool.IsCustom {
			if c.Custom == nil {
				c.Custom = map[string]bool{}
			}
			c.Custom[tool.Name] = true
		}
	}
	c.Edit.Set("tools", string(request.Definitions(tools)))
	if c.caps.NoLogprobsWithTools && string(body.Value("logprobs")) == "true" {
		return translate.BadValue("logprobs", `and "tools" can't be combined: leave out one of them, or set "tool_choice" to "none".`)
	}
	if mode != "required" {
		format := c.Edit.Value(body, "response_format")
		if !jsonbody.IsGiven(format) {
			format = nil
		}
		return c.Offer(tools, string(format))
	}
	if n := len(body.Messages); n > 0 && roleOf(body, n-1) == "assistant" {
		return translate.BadValue("tool_choice",
			`demands a call, but the last of the "messages" begins another answer: leave out that message, or set "tool_choice" to "auto".`)
	}
	format, err := c.Force(tools)
	if err != nil {
		return err
	}
	c.Edit.Set("response_format", format)
	if request.TokenLimit(body.Fields()) < 0 {
		c.Limit = request.MaxForcedTokens
		c.LimitTokens(request.MaxForcedTokens)
	}
	return nil
}

func readTool(path string, tool gjson.Result, work *schema.Work) (request.Tool, *translate.Error) {
	kind := tool.Get("type")
	if kind.Type != gjson.Null && kind.Str != "function" && kind.Str != "custom" {
		return request.Tool{}, translate.BadValue(path+".type", `must be "function" or "custom": this server runs no other tools.`)
	}
	member := cmp.Or(kind.Str, "function")
	v := tool.Get(member)
	path += "." + member
	if v.Type == gjson.Null {
		return request.Tool{}, translate.Missing(path)
	}
	made, err := request.ReadFunction(path, v, work)
	if made.IsStrict = v.Get("strict").Type == gjson.True; err != nil || kind.Str != "custom" {
		return made, err
	}
	return request.NewCustomTool(made.Name, v.Get("description").Str, v.Get("format"), path+".format", work)
}

func chosenName(choice gjson.Result) string {
	if choice.Get("type").Str == "custom" {
		return choice.Get("custom.name").Str
	}
	return choice.Get("function.name").Str
}

// chooseTools reads a tool_choice of the form {"type":"function","function":{"name":…}}, {"type":"custom","custom":{"name":…}} or
// {"type":"allowed_tools","allowed_tools":{"mode":"auto"|"required","tools":[…]}}.
func (c *chatParser) chooseTools(body *jsonbody.Body, tools []request.Tool, choice gjson.Result) *translate.Error {
	var wanted []gjson.Result
	mode := "required"
	switch choice.Get("type").Str {
	case "function", "custom":
		wanted = []gjson.Result{choice}
	case "allowed_tools":
		allowed := choice.Get("allowed_tools")
		wanted, mode = jsonbody.AtMost(request.MaxTools, allowed.Get("tools")), allowed.Get("mode").Str
		if len(wanted) > request.MaxTools {
			most := strconv.Itoa(request.MaxTools)
			return translate.Invalid("invalid_value", "tool_choice", `"tool_choice.allowed_tools.tools" must hold at most `+most+` tools.`)
		}
		if mode != "auto" && mode != "required" {
			return translate.Invalid("invalid_value", "tool_choice", `"tool_choice.allowed_tools.mode" must be "auto" or "required".`)
		}
	default:
		return translate.Invalid("invalid_value", "tool_choice",
			`The "type" of "tool_choice" must be "function", "custom" or "allowed_tools".`)
	}
	names := map[string]bool{}
	for _, w := range wanted {
		names[chosenName(w)] = true
	}
	var kept []request.Tool
	var offered []string
	for _, tool := range tools {
		offered = append(offered, tool.Name)
		if names[tool.Name] {
			kept = append(kept, tool)
			names[tool.Name] = false
		}
	}
	have := "there are no tools"
	if len(offered) > 0 {
		have = "the tools are: " + strings.Join(offered, ", ")
	}
	for _, w := range wanted {
		switch name := chosenName(w); {
		case name == "":
			return translate.BadValue("tool_choice", `must name a function: {"type":"function","function":{"name":"…"}}.`)
		case names[name]:
			return translate.BadValue("tool_choice", `names the function "%s", but %s.`, name, have)
		}
	}
	if len(kept) == 0 {
		return translate.BadValue("tool_choice", `allows no tools: use "none" to have none called.`)
	}
	return c.offer(body, kept, mode)
}
