package translate

import (
	"bytes"
	"regexp"

	"github.com/tidwall/gjson"
)

// maxChatChoices bounds n. Each choice is an upstream request of its own, so it says how long a request may take, not how
// much it takes at a time.
const maxChatChoices = 10_000

// Chat is what a chat request asks for, but for what only the engine has to know of. The fields that have to be written
// otherwise than the client did are in the edit.
type Chat struct {
	N          int  // choices
	SingleCall bool // parallel_tool_calls is false
	HasStop    bool // there are stop strings: only the engine knows if one of them was met
	Seed       int
	HasSeed    bool

	edit Edit
}

// ParseChat reads a chat request. What is wrong with it, or can't be done with the model, is refused here, before anything
// is loaded.
func ParseChat(body *Body, caps Caps) (*Chat, *Error) {
	if err := checkTypes(body); err != nil {
		return nil, err
	}
	if err := checkMessages(body, caps); err != nil {
		return nil, err
	}
	c := &Chat{N: 1}
	for _, parse := range []func(*Body) *Error{c.parseN, c.parseLimits, c.parseStop, c.parseTools, c.parseFormat, c.mendCalls} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	if err := c.parseEffort(body, caps); err != nil {
		return nil, err
	}
	return c, nil
}

// chatTypes are the types of the fields that we know of. The engine would take some of the wrong ones for others, and
// refuse the rest only after it was loaded. Others than these are the engine's to judge.
var chatTypes = map[string]jsonType{
	"temperature": isANumber, "top_p": isANumber, "top_k": isANumber, "min_p": isANumber, "typical_p": isANumber,
	"presence_penalty": isANumber, "frequency_penalty": isANumber, "repeat_penalty": isANumber,
	"seed": isANumber, "n": isANumber, "max_tokens": isANumber, "max_completion_tokens": isANumber, "n_predict": isANumber,
	"top_logprobs": isANumber, "ttl": isANumber,
	"stream": isABoolean, "logprobs": isABoolean, "parallel_tool_calls": isABoolean,
	"draft_model": isAString, "reasoning_effort": isAString,
	"tools": isAnArray, "messages": isAnArray,
	"response_format": isAnObject, "stream_options": isAnObject, "chat_template_kwargs": isAnObject,
	"stop": isAString | isAnArray, "tool_choice": isAString | isAnObject, "logit_bias": isAnObject | isAnArray,
}

func checkTypes(body *Body) *Error {
	for i := range body.fields {
		f := &body.fields[i]
		want, known := chatTypes[string(f.key)]
		value := body.Raw[f.value:f.to]
		if known && want&typeOf(value) == 0 && (value[0] != 'n' || string(f.key) == "messages") {
			return wrongType(string(f.key), want.String(), gjson.ParseBytes(value))
		}
	}
	return nil
}

// checkMessages looks at no more of the messages than their beginning, unless there are images.
func checkMessages(body *Body, caps Caps) *Error {
	messages := body.Value("messages")
	if messages == nil {
		return Missing("messages")
	}
	if bytes.TrimLeft(messages[1:], " \t\r\n")[0] == ']' {
		return Invalid("invalid_value", "messages", `"messages" must hold at least one message.`)
	}
	if body.marks&markImage == 0 {
		return nil
	}
	return checkImages(gjson.ParseBytes(messages), caps)
}

func checkImages(messages gjson.Result, caps Caps) (bad *Error) {
	messages.ForEach(func(_, message gjson.Result) bool {
		if content := message.Get("content"); content.IsArray() {
			content.ForEach(func(_, part gjson.Result) bool {
				if part.Get("type").Str == "image_url" {
					bad = checkImage(part.Get("image_url"), caps)
				}
				return bad == nil
			})
		}
		return bad == nil
	})
	return bad
}

func checkImage(image gjson.Result, caps Caps) *Error {
	url := image.Get("url").Str
	if image.Type == gjson.String {
		url = image.Str
	}
	switch {
	case !caps.Vision:
		return Invalid("unsupported_content", "messages", "The model does not take images: choose a model with vision.")
	case len(url) < 5 || url[:5] != "data:":
		return Invalid("invalid_image_url", "messages",
			`An image's "url" must be a data URL, such as "data:image/png;base64,…": this server fetches no images.`)
	default:
		return nil
	}
}

func (c *Chat) parseN(body *Body) (err *Error) {
	n, given, err := body.Int("n")
	switch {
	case err != nil:
		return err
	case given && (n < 1 || n > maxChatChoices):
		return Invalid("invalid_value", "n", `"n" must be from 1 to `+itoa(maxChatChoices)+`.`)
	case given:
		c.N = n
		c.edit.Remove("n") // each choice is a request of its own
	}
	c.Seed, c.HasSeed, err = body.Int("seed")
	return err
}

// parseLimits makes a limit of any negative number what the engine takes for none.
func (c *Chat) parseLimits(body *Body) *Error {
	for _, name := range limits {
		n, _, err := body.Int(name)
		if err != nil {
			return err
		}
		if n < -1 {
			c.edit.Set(name, "-1")
		}
	}
	return nil
}

func (c *Chat) parseStop(body *Body) *Error {
	value := body.Value("stop")
	switch {
	case value == nil, string(value) == "null":
		return nil
	case value[0] == '"':
		c.HasStop = len(value) > 2
		return nil
	}
	for _, s := range gjson.ParseBytes(value).Array() {
		if s.Type != gjson.String {
			return Invalid("invalid_type", "stop", `"stop" must be a string or an array of strings; it has `+typeName(s)+`.`)
		}
		c.HasStop = c.HasStop || s.Str != ""
	}
	return nil
}

// noArguments is how clients write that a call has none. It can't stand inside a string, where the quotes would be escaped.
var noArguments = regexp.MustCompile(`"arguments"[ \t\r\n]*:[ \t\r\n]*""`)

// mendCalls makes an empty object of arguments that are an empty string, as models write them that call a tool without
// parameters. The engine refuses a conversation that has them.
func (c *Chat) mendCalls(body *Body) *Error {
	if body.marks&markNoArguments == 0 {
		return nil
	}
	c.edit.Set("messages", string(noArguments.ReplaceAll(body.Value("messages"), []byte(`"arguments":"{}"`))))
	return nil
}

// jsonType is a set of JSON's types.
type jsonType uint8

const (
	isAString jsonType = 1 << iota
	isANumber
	isABoolean
	isAnArray
	isAnObject
)

func (t jsonType) String() string {
	names := ""
	for i, name := range []string{"a string", "a number", "a boolean", "an array", "an object"} {
		if t&(1<<i) == 0 {
			continue
		}
		if names != "" {
			names += " or "
		}
		names += name
	}
	return names
}

// typeOf is the type of a JSON value, none for null.
func typeOf(value []byte) jsonType {
	switch value[0] {
	case '"':
		return isAString
	case '{':
		return isAnObject
	case '[':
		return isAnArray
	case 't', 'f':
		return isABoolean
	case 'n':
		return 0
	default:
		return isANumber
	}
}
