package llamaserver

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// CheckChat refuses a setting for the model's thinking that its template doesn't know.
func (w Wire) CheckChat(_ *jsonbody.Body, chat *request.Chat) *translate.Error {
	if w.template == nil {
		return nil
	}
	return chat.Setting.Check(w.template.Reasoning())
}

// Render asks for the prompt that the template makes of a chat.
func (Wire) Render(messages, tools, arguments json.RawMessage) wire.Upstream {
	body, _ := json.Marshal(struct {
		Messages  json.RawMessage `json:"messages"`
		Tools     json.RawMessage `json:"tools,omitempty"`
		Arguments json.RawMessage `json:"chat_template_kwargs,omitempty"`
	}{messages, tools, arguments}) // which are valid
	return wire.Upstream{Path: "/apply-template", Body: [][]byte{body}}
}

// Rendered parses {"prompt":"…"}. What a template refuses has status 400 or 500, according to the version.
func (Wire) Rendered(status int, answer []byte) (prompt string, ok bool, _ *translate.Error) {
	switch said := gjson.GetBytes(answer, "prompt"); {
	case status == 200 && said.Type == gjson.String:
		return said.Str, true, nil
	case status == 400 || status == 500:
		return "", false, nil
	case status == 200:
		return "", false, translate.Nonsense()
	default:
		return "", false, faultOf(status, gjson.GetBytes(answer, "error"))
	}
}

// Dictate allows only one answer, by a grammar.
func (Wire) Dictate(messages, arguments json.RawMessage, text string) wire.Upstream {
	body, _ := json.Marshal(struct {
		Messages  json.RawMessage `json:"messages"`
		Arguments json.RawMessage `json:"chat_template_kwargs,omitempty"`
		Grammar   string          `json:"grammar"`
		Limit     int             `json:"max_tokens"`
	}{messages, arguments, "root ::= " + strconv.Quote(text), len(text) + 1}) // a token has a byte or more; the last one ends the answer
	return wire.Upstream{Path: chatPath, Body: [][]byte{body}}
}

// Dictated parses an answer in one piece.
func (Wire) Dictated(status int, answer []byte) (said string) {
	if status != 200 {
		return ""
	}
	return gjson.GetBytes(answer, "choices.0.message.content").Str
}

// budgets are the fields for how many tokens the model may think.
var budgets = []string{"thinking_budget_tokens", "reasoning_budget_tokens"}

// effortBudgets are those of each effort where a template knows only on and off: the tokens of Gemini's OpenAI-compatible API.
var effortBudgets = map[string]int{"low": 1 << 10, "medium": 8 << 10, "high": 24 << 10}

// setBudget bounds how long the model thinks, after which the engine ends the thought. A quarter of the answer's limit is left to what
// comes after it.
func (w Wire) setBudget(e *jsonbody.Edit, body *jsonbody.Body, limit int, effort, thinking string) {
	if thinking == "off" && w.template.OffBudget != nil {
		e.Set(budgets[0], strconv.Itoa(*w.template.OffBudget)) // the engine counts those of the prompt, and ends the thought
		e.Remove(budgets[1])
		return
	}
	isGiven := func(name string) bool { return jsonbody.IsGiven(e.Value(body, name)) }
	if tokens := effortBudgets[effort]; tokens > 0 && thinking == "on" && !slices.ContainsFunc(budgets, isGiven) {
		e.Set(budgets[0], strconv.Itoa(tokens))
	}
	for _, name := range budgets {
		if most := limit - limit/4; limit > 0 && gjson.ParseBytes(e.Value(body, name)).Num > float64(most) {
			e.Set(name, strconv.Itoa(most))
		}
	}
}

// ThoughtEnd looks at what the engine is sent. An answer in a format begins with no thought, since all of it is held to the format.
func (w Wire) ThoughtEnd(body *jsonbody.Body, chat *request.Chat) string {
	if w.template == nil || w.template.ThoughtEnd == "" {
		return ""
	}
	e, thinking := w.chatEdit(body, chat, 0)
	if thinking == "" || thinking == "off" || jsonbody.Unquote(e.Value(body, "reasoning_format")) == "none" {
		return ""
	}
	for _, name := range []string{"response_format", "json_schema", "grammar"} {
		if jsonbody.IsGiven(e.Value(body, name)) {
			return ""
		}
	}
	role := request.LastRole(gjson.ParseBytes(e.Value(body, "messages")))
	if role == "assistant" || role == "tool" && !w.template.ResultsThink {
		return ""
	}
	return w.template.ThoughtEnd
}

// Continue puts what was said in the assistant's last message, which llama-server takes as the beginning of the answer, be it
// thinking or text. It streams only what is new. It isn't done where the first answer was held to more than a prompt can
// tell: a grammar would begin again, and so would the budget of thinking.
func (w Wire) Continue(body *jsonbody.Body, chat *request.Chat, choice int, said *wire.Said) (wire.Upstream, bool) {
	value := func(name string) gjson.Result { return gjson.ParseBytes(chat.Edit.Value(body, name)) }
	if !said.CanGoOn() || said.IsMixed || chat.Forced || value("response_format").IsObject() || value("grammar").Str != "" {
		return wire.Upstream{}, false
	}
	if w.ThoughtEnd(body, chat) != "" { // nor does it know what of that was thought
		return wire.Upstream{}, false
	}
	switch value("reasoning_format").Str {
	case "", "auto", "deepseek":
	default: // thinking is a part of the text
		return wire.Upstream{}, false
	}
	if said.Text == "" {
		for _, name := range budgets {
			if v := value(name); v.Type == gjson.Number && v.Num >= 0 {
				return wire.Upstream{}, false
			}
		}
	}
	e, _ := w.chatEdit(body, chat, choice)
	messages, ok := withSaid(e.Value(body, "messages"), value, said)
	if !ok {
		return wire.Upstream{}, false
	}
	e.Set("messages", string(messages))
	e.Remove("continue_final_message")
	e.Remove("add_generation_prompt")
	for _, name := range request.Limits { // in order of precedence
		limit := value(name)
		if limit.Type != gjson.Number {
			continue
		}
		left := int(limit.Num) - said.Usage.Completion
		if limit.Num >= 0 && left <= 0 {
			return wire.Upstream{}, false
		}
		if limit.Num >= 0 {
			e.Set(name, strconv.Itoa(left))
		}
		break
	}
	return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}, true
}

// withSaid returns the messages with what was said as the beginning of the answer. The client may have begun it as well.
func withSaid(messages []byte, value func(name string) gjson.Result, said *wire.Said) ([]byte, bool) {
	list := gjson.ParseBytes(messages).Array()
	if len(list) == 0 {
		return nil, false
	}
	last := list[len(list)-1]
	isBegun := last.Get("role").Str == "assistant"
	switch { // of the engine's own rules, only the usual ones are known well enough
	case isBegun && value("continue_final_message").Type == gjson.False, isBegun && value("add_generation_prompt").Type == gjson.True,
		!isBegun && value("continue_final_message").Type == gjson.True, !isBegun && value("add_generation_prompt").Type == gjson.False:
		return nil, false
	}
	end := last.Index + len(last.Raw)
	reasoning, text := said.Reasoning, said.Text
	if isBegun {
		end = last.Index
		given, thought := last.Get("content"), last.Get("reasoning_content").Str
		isOdd := false
		last.ForEach(func(key, _ gjson.Result) bool {
			isOdd = isOdd || key.Str != "role" && key.Str != "content" && key.Str != "reasoning_content"
			return !isOdd
		})
		if isOdd || given.Type != gjson.String && given.Type != gjson.Null || given.Str != "" && reasoning != "" {
			return nil, false
		}
		reasoning, text = thought+reasoning, given.Str+text
	}
	made := append(make([]byte, 0, len(messages)+2*len(reasoning)+2*len(text)+64), messages[:end]...)
	if !isBegun {
		made = append(made, ',')
	}
	made = append(made, `{"role":"assistant","content":`...)
	made = jsonbody.AppendString(made, text)
	if text != "" { // the template ends the thinking with a line end of its own
		reasoning = strings.TrimSuffix(reasoning, "\n")
	}
	if reasoning != "" {
		made = jsonbody.AppendString(append(made, `,"reasoning_content":`...), reasoning)
	}
	return append(made, "}]"...), true
}

// ContinueText makes what was said a part of the prompt. A gap between two texts isn't filled on.
func (w Wire) ContinueText(body *jsonbody.Body, c *request.Completion, prompt, candidate int, said *wire.Said) (wire.Upstream, bool) {
	if grammar := gjson.ParseBytes(c.Edit.Value(body, "grammar")); !said.CanGoOn() || c.Gap != nil || grammar.Str != "" {
		return wire.Upstream{}, false
	}
	going := *c
	text := string(c.Prompts[prompt])
	if request.IsTokens(c.Prompts[prompt]) { // a prompt may mix ids and texts
		text = strings.TrimRight(strings.TrimSuffix(text, "]"), " \t\r\n")
		if text != "[" {
			text += ","
		}
		text += string(jsonbody.AppendString(nil, said.Text)) + "]"
	} else {
		text = string(jsonbody.AppendString(nil, jsonbody.Unquote(c.Prompts[prompt])+said.Text))
	}
	going.Prompts = append(append(going.Prompts[:0:0], c.Prompts[:prompt]...), []byte(text))
	if c.MaxTokens >= 0 {
		if going.MaxTokens = c.MaxTokens - said.Usage.Completion; going.MaxTokens <= 0 {
			return wire.Upstream{}, false
		}
	}
	return w.Completion(body, &going, prompt, candidate), true
}

// Interface guards
var (
	_ wire.Specific      = Wire{}
	_ wire.Pinner        = Wire{}
	_ wire.Adapter       = Wire{}
	_ wire.Renderer      = Wire{}
	_ wire.Dictator      = Wire{}
	_ wire.ThoughtLeaver = Wire{}
	_ wire.Unparser      = Wire{}
	_ wire.Continuer     = Wire{}
	_ wire.TextContinuer = Wire{}
)
