package responses

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// call reads a call of a function. The input of a custom tool, which is any text, becomes an argument.
func (p *inputParser) call(kind string, v *inputItem, item *translate.Item) (err *translate.Error) {
	item.Kind = translate.ItemCall
	if item.CallID, err = p.name(".call_id", v.callID, true); err != nil {
		return err
	}
	if item.Tool, err = p.name(".name", v.name, true); err != nil {
		return err
	}
	if item.Namespace, err = p.name(".namespace", v.namespace, false); err != nil {
		return err
	}
	if kind == "custom_tool_call" {
		input, err := p.optional(".input", v.input)
		item.Custom, item.Args = true, asArguments(string(request.CustomArguments(input)))
		p.add(item)
		return err
	}
	err = request.SetArguments(item, p.path(".arguments"), v.arguments)
	p.add(item)
	return err
}

// result reads what a function returned: a text, or texts and images.
func (p *inputParser) result(kind string, v *inputItem, item *translate.Item) (err *translate.Error) {
	item.Kind, item.Status = translate.ItemResult, translate.ItemComplete
	item.Custom = kind == "custom_tool_call_output"
	if item.CallID, err = p.name(".call_id", v.callID, true); err != nil {
		return err
	}
	item.Parts, err = p.content(".output", v.output, true)
	p.add(item)
	return err
}

// mcpCall reads an earlier call of a tool of an MCP server, with its result.
func (p *inputParser) mcpCall(v *inputItem, item *translate.Item) (err *translate.Error) {
	item.Kind, item.Provider = translate.ItemCall, &translate.Provider{}
	if item.Tool, err = p.name(".name", v.name, true); err != nil {
		return err
	}
	if item.Provider.Server, err = p.name(".server_label", v.server, true); err != nil {
		return err
	}
	if err = request.SetArguments(item, p.path(".arguments"), v.arguments); err != nil {
		return err
	}
	if item.CallID = item.ID; item.CallID == "" {
		item.CallID = "mcp_call_" + strconv.Itoa(len(p.items))
	}
	output, err := p.optional(".output", v.output)
	if err != nil {
		return err
	}
	if jsonbody.IsGiven(v.failed) {
		if output, err = errorText(p.path(".error"), gjson.ParseBytes(v.failed)); err != nil {
			return err
		}
		item.Status, item.Raw = translate.ItemFailed, toolError(output)
	}
	p.add(item)
	p.add(&translate.Item{ID: item.ID, Kind: translate.ItemResult, CallID: item.CallID, Tool: item.Tool, Parts: []translate.Part{{Text: output}}, Raw: textContent(output)})
	return nil
}

// errorText returns the text of the error of an MCP call: in the old form a string, else an object with a message or a content.
func errorText(where string, v gjson.Result) (string, *translate.Error) {
	var texts []string
	for _, part := range jsonbody.AtMost(request.MaxParts, v.Get("content")) {
		texts = append(texts, part.Get("text").Str)
	}
	switch {
	case len(texts) > request.MaxParts:
		return "", tooManyParts(where + ".content")
	case v.Type == gjson.String:
		return v.Str, nil
	case len(texts) > 0:
		return strings.Join(texts, "\n"), nil
	case v.Get("message").Type == gjson.String:
		return v.Get("message").Str, nil
	default:
		return v.Raw, nil
	}
}

func (p *inputParser) name(field string, value []byte, isRequired bool) (name string, err *translate.Error) {
	if isRequired {
		name, err = p.required(field, value)
	} else {
		name, err = p.optional(field, value)
	}
	if err == nil && len(name) > jsonbody.MaxNameLength {
		err = request.TooLong(p.path(field))
	}
	return name, err
}

// summaryMark starts what clients get in place of a summary. It isn't secret, but clients can't know its form.
const summaryMark = "lmc1."

func sealed(summary string) string {
	return summaryMark + base64.StdEncoding.EncodeToString([]byte(summary))
}

// summary reads the summary of a conversation, made by POST /v1/responses/compact.
func (p *inputParser) summary(v *inputItem, item *translate.Item) *translate.Error {
	text, err := p.required(".encrypted_content", v.encrypted)
	if err != nil {
		return err
	}
	encoded, isOurs := strings.CutPrefix(text, summaryMark)
	summary, bad := base64.StdEncoding.DecodeString(encoded)
	if !isOurs || bad != nil {
		where := p.path(".encrypted_content")
		return translate.Invalid("invalid_value", where, `"`+where+`" was not made by this server's /v1/responses/compact, so it can't be read: send the items that it stands for.`)
	}
	item.Kind, item.Parts = translate.ItemSummary, []translate.Part{{Text: strings.ToValidUTF8(string(summary), "\uFFFD")}}
	p.add(item)
	return nil
}

// CheckCalls returns the error of a conversation that has the result of a function without its call, or a call without its result. A
// call that was cut off needs none.
func CheckCalls(conversation []translate.Item) *translate.Error {
	calls := map[string]bool{} // whether there is a call with the id
	open := map[string]bool{}
	for i := range conversation {
		item := &conversation[i]
		switch item.Kind {
		case translate.ItemCall, translate.ItemInvalid:
			calls[item.CallID] = true
			if item.Kind == translate.ItemCall && item.Provider == nil && item.Status == translate.ItemComplete {
				open[item.CallID] = true
			}
		case translate.ItemResult:
			if !calls[item.CallID] {
				return translate.Invalid("", "input", "No tool call found for function call output with call_id "+short(item.CallID)+".")
			}
			delete(open, item.CallID)
		}
	}
	for i := range conversation {
		if item := &conversation[i]; item.Kind == translate.ItemCall && open[item.CallID] {
			return translate.Invalid("", "input", "No tool output found for function call "+short(item.CallID)+".")
		}
	}
	return nil
}

func short(id string) string {
	quoted := translate.QuoteShort(id)
	return quoted[1 : len(quoted)-1]
}
