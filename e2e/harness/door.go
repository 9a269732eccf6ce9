package harness

import (
	"encoding/base64"
	"slices"

	"github.com/tidwall/gjson"
)

// Door is an endpoint that answers a question, in the words of its dialect.
type Door struct {
	Name, Path string
	// Ask returns the request; nil if the dialect has no notion of something in the question.
	Ask  func(q *Question) Fields
	Read func(o *Outcome, piece gjson.Result) // adds a piece of a stream, or the only one
	Raw  bool                                 // it continues a text, without the model's template: its answers are others

	optional []string // fields that a client may send as null
}

// Question is a request in the words of no dialect.
type Question struct {
	Model    string
	System   *string // nil: none
	Messages []Message
	Image    []byte // a PNG in the last message
	Schema   any    // of the parameters of a tool, echo, that is offered; nil: none
	Most     int    // tokens of the answer; 0: enough
	Thinks   bool
	Nulls    bool // each field that may be left out is there, and null
}

// User is a question of one message.
func User(text string) Question { return Question{Messages: []Message{{Role: "user", Text: text}}} }

// most is the limit of tokens, which some dialects require.
func (q *Question) most() int {
	if q.Most > 0 {
		return q.Most
	}
	return 120
}

// isPlain reports whether the question is one message of a user, which dialects without conversations have.
func (q *Question) isPlain() bool {
	return len(q.Messages) == 1 && q.Messages[0].Role == "user" && q.Schema == nil
}

func (q *Question) dataURL() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(q.Image)
}

// Request returns the request of a question to a door, streamed or not; nil if the dialect has no notion of it.
func (d *Door) Request(q *Question, stream bool) Fields {
	request := d.Ask(q)
	if request == nil {
		return nil
	}
	if q.Nulls {
		for _, name := range d.optional {
			if _, given := request[name]; !given {
				request[name] = nil
			}
		}
	}
	return request.With("model", q.Model).With("stream", stream)
}

// conversation returns the fields of a question in a dialect that has conversations. withImage puts the image into the last message.
func (q *Question) conversation(d Dialect, withImage func(message Fields)) Fields {
	request := d.Request(q.Messages, nil)
	messages := request[d.List].([]Fields)
	if len(q.Image) > 0 {
		withImage(messages[len(messages)-1])
	}
	return request
}

func hasRole(messages []Message, roles ...string) bool {
	return slices.ContainsFunc(messages, func(m Message) bool { return slices.Contains(roles, m.Role) })
}

// echo is the tool that the shipped model knows to call.
func (q *Question) echo() Fields {
	return Fields{"name": "echo", "description": "Says what it is told", "parameters": q.Schema}
}

func byName(name string) Dialect {
	i := slices.IndexFunc(Dialects, func(d Dialect) bool { return d.Name == name })
	return Dialects[i]
}

// Doors are all endpoints that answer with text.
var Doors = []Door{
	{Name: "chat", Path: ChatPath, Ask: askChat, Read: readChoice, optional: chatOptional},
	{Name: "v0 chat", Path: "/api/v0/chat/completions", Ask: askChat, Read: readChoice, optional: chatOptional},
	{Name: "messages", Path: "/v1/messages", Ask: askMessages, Read: readBlocks, optional: []string{"system", "stop_sequences", "tools", "tool_choice", "thinking", "metadata", "top_p", "top_k"}},
	{Name: "responses", Path: RespondPath, Ask: askResponses, Read: readItems, optional: []string{"instructions", "tools", "tool_choice", "previous_response_id", "text", "metadata", "top_p", "include"}},
	{Name: "native", Path: NativeChatPath, Ask: askNative, Read: readNative, optional: []string{"system_prompt", "integrations", "top_p", "top_k", "min_p", "repeat_penalty", "previous_response_id", "context_length"}},
	{Name: "ollama chat", Path: "/api/chat", Ask: askOllama, Read: readLine, optional: []string{"tools", "format", "keep_alive"}},
	{Name: "generate", Path: "/api/generate", Ask: askGenerate, Read: readLine, optional: []string{"system", "suffix", "images", "format", "template", "context", "keep_alive"}},
	{Name: "completions", Path: "/v1/completions", Ask: askCompletion, Read: readChoice, Raw: true, optional: []string{"suffix", "stop", "seed", "logprobs", "top_p", "logit_bias", "user"}},
}

var chatOptional = []string{"tools", "tool_choice", "stop", "seed", "response_format", "top_p", "logit_bias", "user", "stream_options", "n"}

func askChat(q *Question) Fields {
	if q.System != nil {
		q = q.withSystem()
	}
	request := q.conversation(byName("chat"), func(m Fields) {
		m["content"] = []Fields{{"type": "text", "text": m["content"]}, {"type": "image_url", "image_url": Fields{"url": q.dataURL()}}}
	})
	request["max_tokens"], request["reasoning_effort"] = q.most(), effort(q)
	if q.Schema != nil {
		request["tools"] = []Fields{{"type": "function", "function": q.echo()}}
	}
	return request
}

// withSystem returns the question with its system prompt as the first message.
func (q *Question) withSystem() *Question {
	with := *q
	with.System, with.Messages = nil, append([]Message{{Role: "system", Text: *q.System}}, q.Messages...)
	return &with
}

func effort(q *Question) string {
	if q.Thinks {
		return "high"
	}
	return "none"
}

func askMessages(q *Question) Fields {
	if hasRole(q.Messages, "system", "developer") {
		return nil
	}
	request := q.conversation(byName("messages"), func(m Fields) {
		source := Fields{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(q.Image)}
		m["content"] = []Fields{{"type": "text", "text": m["content"]}, {"type": "image", "source": source}}
	})
	request["max_tokens"] = q.most()
	if q.System != nil {
		request["system"] = *q.System
	}
	if q.Thinks {
		request["thinking"] = Fields{"type": "enabled", "budget_tokens": 1024}
		request["max_tokens"] = 1024 + q.most()
	}
	if q.Schema != nil {
		request["tools"] = []Fields{{"name": "echo", "description": "Says what it is told", "input_schema": q.Schema}}
	}
	return request
}

func askResponses(q *Question) Fields {
	request := q.conversation(byName("responses"), func(m Fields) {
		m["content"] = []Fields{{"type": "input_text", "text": m["content"]}, {"type": "input_image", "image_url": q.dataURL()}}
	})
	request["max_output_tokens"], request["reasoning"] = q.most(), Fields{"effort": effort(q)}
	if q.System != nil {
		request["instructions"] = *q.System
	}
	if q.Schema != nil {
		request["tools"] = []Fields{Merge(q.echo(), Fields{"type": "function"})}
	}
	return request
}

func askNative(q *Question) Fields {
	if !q.isPlain() {
		return nil
	}
	request := Fields{"input": q.Messages[0].Text, "temperature": 0, "max_output_tokens": q.most(), "store": false, "reasoning": "off"}
	if len(q.Image) > 0 {
		request["input"] = []Fields{{"type": "message", "content": q.Messages[0].Text}, {"type": "image", "data_url": q.dataURL()}}
	}
	if q.Thinks {
		request["reasoning"] = "on"
	}
	if q.System != nil {
		request["system_prompt"] = *q.System
	}
	return request
}

func askOllama(q *Question) Fields {
	if hasRole(q.Messages, "developer") {
		return nil
	}
	if q.System != nil {
		q = q.withSystem()
	}
	request := q.conversation(byName("ollama"), func(m Fields) { m["images"] = [][]byte{q.Image} })
	request["think"], request["options"] = q.Thinks, Fields{"temperature": 0, "num_predict": q.most()}
	if q.Schema != nil {
		request["tools"] = []Fields{{"type": "function", "function": q.echo()}}
	}
	return request
}

func askGenerate(q *Question) Fields {
	if !q.isPlain() {
		return nil
	}
	request := Fields{"prompt": q.Messages[0].Text, "think": q.Thinks, "options": Fields{"temperature": 0, "num_predict": q.most()}}
	if len(q.Image) > 0 {
		request["images"] = [][]byte{q.Image}
	}
	if q.System != nil {
		request["system"] = *q.System
	}
	return request
}

func askCompletion(q *Question) Fields {
	if !q.isPlain() || q.System != nil || len(q.Image) > 0 || q.Thinks {
		return nil
	}
	return Fields{"prompt": q.Messages[0].Text, "temperature": 0, "max_tokens": q.most()}
}
