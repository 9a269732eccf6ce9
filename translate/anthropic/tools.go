package anthropic

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// parseTools converts the tools with a schema to functions. The others run on Anthropic's servers, or are built into its
// models. If a tool is chosen by name, only that one is kept.
func (m *Messages) parseTools(body *jsonbody.Body) *translate.Error {
	choice := body.Get("tool_choice")
	if choice.Exists() && choice.Type != gjson.Null && !choice.IsObject() {
		return wrongPlace("tool_choice", "an object", jsonOf(choice))
	}
	m.Chat.SingleCall = choice.Get("disable_parallel_tool_use").Bool()
	wanted := choice.Get("name").Str
	kind := choice.Get("type")
	switch {
	case !choice.IsObject(), kind.Str == "auto", kind.Str == "none", kind.Str == "any":
		wanted = ""
	case kind.Str != "tool":
		return badPlace("tool_choice.type", `must be "auto", "any", "tool" or "none".`)
	case wanted == "":
		return wrongPlace("tool_choice.name", "the name of a tool", jsonOf(choice.Get("name")))
	}
	tools, offered, err := functionsOf(body.Get("tools"), wanted)
	isForced := kind.Str == "any" || wanted != ""
	switch {
	case err != nil:
		return err
	case kind.Str == "none": // an engine would describe them to the model
		return nil
	case wanted != "" && len(tools) == 0:
		have := "there are none"
		if len(offered) > 0 {
			have = "there are: " + strings.Join(offered, ", ")
		}
		return badPlace("tool_choice.name", `there is no tool "%s"; %s.`, wanted, have)
	case kind.Str == "any" && len(tools) == 0:
		return badPlace("tool_choice.type", `is "any", but there are no "tools" to call.`)
	case len(tools) == 0:
		return nil
	}
	m.edit.Set("tools", string(request.Definitions(tools)))
	if isForced {
		format, err := m.Chat.Force(tools)
		m.edit.Set("response_format", format)
		return err
	}
	return m.Chat.Offer(tools, string(m.edit.Value(&jsonbody.Body{}, "response_format")))
}

func functionsOf(tools gjson.Result, wanted string) (functions []request.Tool, offered []string, _ *translate.Error) {
	all := jsonbody.AtMost(request.MaxTools, tools)
	switch {
	case !tools.Exists(), tools.Type == gjson.Null:
		return nil, nil, nil
	case !tools.IsArray():
		return nil, nil, wrongPlace("tools", "an array", jsonOf(tools))
	case len(all) > request.MaxTools:
		return nil, nil, badPlace("tools", "must hold at most %d tools.", request.MaxTools)
	}
	var work schema.Work
	for i, tool := range all {
		path := "tools." + strconv.Itoa(i)
		name, input, kind := tool.Get("name"), tool.Get("input_schema"), tool.Get("type").Str
		switch {
		case !tool.IsObject():
			return nil, nil, wrongPlace(path, "an object", jsonOf(tool))
		case kind != "" && kind != "custom" && !isGivenSchema(input):
			continue
		case name.Type != gjson.String || name.Str == "":
			return nil, nil, wrongPlace(path+".name", "a name", jsonOf(name))
		case !isGivenSchema(input):
			return nil, nil, wrongPlace(path+".input_schema", "an object", jsonOf(input))
		}
		offered = append(offered, name.Str)
		if wanted != "" && name.Str != wanted {
			continue
		}
		made := request.NewTool(name.Str, tool.Get("description").Str, input, path+".input_schema", &work)
		made.IsStrict = tool.Get("strict").Type == gjson.True
		functions = append(functions, made)
	}
	return functions, offered, nil
}

func isGivenSchema(v gjson.Result) bool { return v.Type != gjson.Null && request.IsSchema(v) }
