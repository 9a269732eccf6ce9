package responses

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// call reads a call of a function. The input of a custom tool, which is any text, becomes an argument.
func (p *inputParser) call(kind string, item *translate.Item) {
	item.Kind, item.CallID, item.Tool, item.Namespace = translate.ItemCall, p.Name("call_id"), p.Name("name"), p.Short("namespace")
	if kind == "custom_tool_call" {
		item.Custom, item.Args = true, asArguments(string(request.CustomArguments(p.Text("input"))))
	} else {
		p.Refuse(request.SetArguments(item, p.At("arguments"), p.Get("arguments")))
	}
}

func (p *inputParser) mcpCall(item *translate.Item) {
	item.Kind, item.Tool, item.Provider = translate.ItemCall, p.Name("name"), &translate.Provider{Server: p.Name("server_label")}
	p.Refuse(request.SetArguments(item, p.At("arguments"), p.Get("arguments")))
	item.CallID = cmp.Or(item.ID, "mcp_call_"+strconv.Itoa(len(p.items)))
	output := p.Text("output")
	if failed := p.Get("error"); jsonbody.IsGiven(failed) {
		var err *translate.Error
		output, err = errorText(p.At("error"), gjson.ParseBytes(failed))
		p.Refuse(err)
		item.Status, item.Raw = translate.ItemFailed, toolError(textContent(output))
	}
	p.items = append(p.items, *item, *resultOf(item, []translate.Part{{Text: output}}, textContent(output)))
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

// summaryMark starts what clients get in place of a summary. It isn't secret, but clients can't know its form.
const summaryMark = "lmc1."

func sealed(summary string) string {
	return summaryMark + base64.StdEncoding.EncodeToString([]byte(summary))
}

// summary reads the summary of a conversation, made by POST /v1/responses/compact.
func (p *inputParser) summary(item *translate.Item) {
	encoded, isOurs := strings.CutPrefix(p.Required("encrypted_content"), summaryMark)
	summary, bad := base64.StdEncoding.DecodeString(encoded)
	if !isOurs || bad != nil {
		p.Refuse(translate.BadValue(p.At("encrypted_content"),
			"was not made by this server's /v1/responses/compact, so it can't be read: send the items that it stands for."))
	}
	item.Kind, item.Parts = translate.ItemSummary, []translate.Part{{Text: strings.ToValidUTF8(string(summary), "\uFFFD")}}
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
