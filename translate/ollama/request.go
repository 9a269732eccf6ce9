package ollama

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Request is a request of POST /api/chat or POST /api/generate.
type Request struct {
	Model     string         // as the client calls it
	Streams   bool           // true unless the request says otherwise
	IsEmpty   bool           // there is nothing to answer: the model is only loaded, or unloaded
	KeepAlive *time.Duration // of the model after the answer, as [KeepAlive] returns it
	Context   int            // tokens, if this request loads the model; 0: not given

	Chat       request.Chat        // for the wire of the engine
	Completion *request.Completion // of a text without a template, or with a gap; nil: it is a chat
	Memory     *Memory             // what the answer's context has to hold, without the answer; nil: it has none

	caps     request.Caps
	edit     jsonbody.Edit // fields of the engine's request, without the messages or the prompt
	messages request.Messages
}

// ParseChat parses a request of POST /api/chat. It rejects invalid requests, and those that the model can't serve, before anything
// is loaded. Unknown fields and options are ignored.
func ParseChat(body *jsonbody.Body, caps request.Caps) (*Request, *translate.Error) {
	r, err := parse(body, caps)
	if err != nil {
		return nil, err
	}
	given := body.Value("messages")
	switch {
	case !jsonbody.IsGiven(given):
		r.IsEmpty = true
		return r, nil
	case given[0] != '[':
		return nil, jsonbody.WrongJSON("messages", "an array", given)
	case len(body.Messages) == 0:
		r.IsEmpty = true
		return r, nil
	}
	if err := body.Parse(r.parseFormat, r.parseTools, r.parseThink, r.parseLogprobs); err != nil {
		return nil, err
	}
	r.messages, err = parseMessages(body, caps)
	return r, err
}

// ParseGenerate parses a request of POST /api/generate, like ParseChat.
func ParseGenerate(body *jsonbody.Body, caps request.Caps) (*Request, *translate.Error) {
	r, err := parse(body, caps)
	if err != nil {
		return nil, err
	}
	b := body.Fields()
	prompt, suffix, system, template := givenText(b, "prompt"), givenText(b, "suffix"), givenText(b, "system"), givenText(b, "template")
	raw := b.Bool("raw")
	switch {
	case b.Err != nil:
		return nil, b.Err
	case template != nil:
		return nil, unsupported("template",
			`a template in the request is not supported: the model's own is used; set "raw" to true to send a prompt as it is`)
	case raw && (system != nil || body.Get("context").Get("0").Exists()):
		return nil, unsupported("raw", "raw mode does not support template, system, or context")
	case prompt == nil && suffix == nil:
		r.IsEmpty = true
		return r, nil
	case raw, suffix != nil:
		return r, r.parseText(body, prompt, suffix)
	}
	if err := body.Parse(r.parseFormat, r.parseThink, r.parseLogprobs); err != nil {
		return nil, err
	}
	before, err := parseContext(body.Get("context"))
	if err != nil {
		return nil, err
	}
	if system != nil {
		before.System = jsonbody.Unquote(system)
	}
	before.Turns = append(before.Turns, request.TextPart(prompt))
	if r.messages, err = promptMessages(before, body.Value("images"), caps); err != nil {
		return nil, err
	}
	if before.fits(0) {
		r.Memory = before
	}
	return r, nil
}

// givenText returns a text as JSON; nil if it is empty.
func givenText(b *jsonbody.Reader, name string) []byte {
	if text := b.Quoted(name); len(text) > len(`""`) {
		return text
	}
	return nil
}

func unsupported(param, message string) *translate.Error {
	return translate.Invalid("unsupported_value", param, message)
}

func parse(body *jsonbody.Body, caps request.Caps) (*Request, *translate.Error) {
	r := &Request{Chat: request.Chat{N: 1, Thinks: caps.Thinks()}, caps: caps}
	b := body.Fields()
	r.Model, r.Streams = b.Text("model"), b.BoolOr("stream", true)
	keepAlive, err := KeepAlive(body)
	b.Refuse(err)
	r.KeepAlive = keepAlive
	b.Bool("truncate")
	b.Bool("shift")
	if b.Bool("_debug_render_only") {
		b.Refuse(unsupported("_debug_render_only", `"_debug_render_only" is not supported`))
	}
	b.Refuse(r.parseOptions("options", body.Get("options"), func(string, gjson.Result) {}))
	return r, b.Err
}

func (r *Request) parseText(body *jsonbody.Body, prompt, suffix []byte) *translate.Error {
	for _, name := range []string{"format", "images", "context"} {
		if v := body.Get(name); v.Exists() && v.Type != gjson.Null && v.String() != "" && v.Raw != "[]" {
			return unsupported(name, `"`+name+`" can't be combined with "raw" or "suffix"`)
		}
	}
	if err := r.parseLogprobs(body); err != nil {
		return err
	}
	if prompt == nil {
		prompt = []byte(`""`)
	}
	c := &request.Completion{
		Prompts: []json.RawMessage{prompt}, N: 1, BestOf: 1, Logprobs: -1,
		MaxTokens: -1, Stop: r.Chat.Stops, Seed: request.RandomSeed,
	}
	if after := jsonbody.Unquote(suffix); after != "" {
		c.Gap = &request.Gap{Suffix: after}
	}
	if r.Chat.Logprobs {
		c.Logprobs = int(body.Get("top_logprobs").Num)
	}
	for name, field := range map[string]*int{"max_tokens": &c.MaxTokens, "seed": &c.Seed} {
		if n := r.edit.Value(&jsonbody.Body{}, name); n != nil {
			*field, _ = strconv.Atoi(string(n)) // it was checked
		}
	}
	r.Completion = c
	return nil
}

// Upstream returns the request for the wire of an engine. It can be called once.
func (r *Request) Upstream() (*jsonbody.Body, *translate.Error) {
	fields := r.edit.Apply(&jsonbody.Body{})
	if r.Completion == nil {
		return r.messages.Body(fields)
	}
	var text jsonbody.Edit // although the prompt is sent from elsewhere: the request counts by the size of its body
	text.SetLarge("prompt", r.Completion.Prompts[0])
	raw := text.Apply(&jsonbody.Body{})
	if len(fields) > len("{}") {
		raw = append(append(raw[:len(raw)-1], ','), fields[1:]...)
	}
	return jsonbody.Scan(raw)
}

func (r *Request) parseTools(body *jsonbody.Body) *translate.Error {
	read := func(path string, tool gjson.Result, work *schema.Work) (request.Tool, *translate.Error) {
		if kind := tool.Get("type").String(); kind != "" && kind != "function" {
			return request.Tool{}, translate.BadValue(path+".type", `must be "function".`)
		}
		return request.ReadFunction(path+".function", tool.Get("function"), work)
	}
	tools, err := request.ReadTools(body.Get("tools"), read)
	if len(tools) == 0 {
		return err
	}
	r.edit.Set("tools", string(request.Definitions(tools)))
	return r.Chat.Offer(tools, string(r.edit.Value(&jsonbody.Body{}, "response_format")))
}

// parseFormat parses the format of the answer: "json", or a JSON schema. An empty text stands for none.
func (r *Request) parseFormat(body *jsonbody.Body) *translate.Error {
	format := body.Get("format")
	switch {
	case format.Type == gjson.Null, format.Type == gjson.String && format.Str == "":
		return nil
	case format.Type == gjson.String && format.Str == "json":
		r.edit.Set("response_format", `{"type":"json_object"}`)
		return nil
	case !format.IsObject():
		return translate.BadValue("format", `must be "json" or a JSON schema, not %s.`, translate.QuoteShort(format.String()))
	}
	made, err := r.Chat.Format(format, "format")
	r.edit.Set("response_format", made)
	return err
}

// parseThink parses whether the model is to think, and how much. Without it, the model's own default counts.
func (r *Request) parseThink(body *jsonbody.Body) *translate.Error {
	think := body.Get("think")
	switch {
	case think.Type == gjson.Null:
		return nil
	case think.Type == gjson.False:
		r.Chat.Thinks = r.Chat.Thinks && !r.caps.SetSilent(&r.edit)
		return nil
	case think.Type == gjson.True, think.Type == gjson.String && thinkLevels[think.Str]:
	default:
		return translate.BadValue("think", `must be true, false, "low", "medium", "high" or "max".`)
	}
	if !r.caps.Thinks() {
		return LacksSupport(r.Model, "thinking")
	}
	r.caps.SetThinking(&r.edit, think.Str)
	return nil
}

var thinkLevels = map[string]bool{"low": true, "medium": true, "high": true, "max": true}

func (r *Request) parseLogprobs(body *jsonbody.Body) *translate.Error {
	b := body.Fields()
	wanted := b.Bool("logprobs")
	top, _ := b.Int("top_logprobs")
	switch {
	case b.Err != nil:
		return b.Err
	case top < 0 || top > request.MaxLogprobs:
		return translate.Invalid("invalid_value", "top_logprobs", "top_logprobs must be between 0 and "+strconv.Itoa(request.MaxLogprobs))
	case !wanted:
		return nil
	case r.caps.NoLogprobsWithTools && r.edit.Has("tools"):
		return unsupported("logprobs", `"logprobs" and "tools" can't be combined: leave out one of them`)
	}
	r.Chat.Logprobs, r.Chat.OnlyChosen = true, top == 0
	r.edit.Set("logprobs", "true")
	if top > 0 {
		r.edit.Set("top_logprobs", strconv.Itoa(top))
	}
	return nil
}
