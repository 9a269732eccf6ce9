// Package openai implements the dialect of the OpenAI-style endpoints: chat completions, text completions, embeddings and
// ranks. The API v0 has the same endpoints, with additional members in the answers.
package openai

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ChatBody is the body of a chat completion, made of a [ChatChoice] for each choice.
type ChatBody struct {
	Envelope
	Reasoning  ReasoningField
	SingleCall bool            // keep only the first of parallel tool calls
	OnlyChosen bool            // list log probabilities of the chosen tokens only
	Custom     map[string]bool // the names of the custom tools, whose calls have another form
	Extra      Extra
}

// ChatChoice gathers the events of one upstream request.
type ChatChoice struct {
	text, reasoning strings.Builder
	calls           []chatCall
	args            [][]byte       // arguments of each call
	indexes         []int          // the engine's indexes of the calls
	logprobs        []gjson.Result // of each token, as the engine wrote them
	outcome         translate.Outcome
}

type chatCall struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function *chatFunction `json:"function,omitempty"`
	Custom   *chatCustom   `json:"custom,omitempty"`

	name string
}

type (
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatCustom struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	}
)

// AppendBody appends the body of an answer, all of whose choices have finished.
func (b *ChatBody) AppendBody(dst []byte, choices []*ChatChoice) []byte {
	size := 512 + len(b.Model)
	for _, c := range choices {
		size += 256 + c.text.Len() + c.reasoning.Len()
	}
	dst = jsonbody.AppendString(append(slices.Grow(dst, size), `{"id":`...), b.ID)
	dst = strconv.AppendInt(append(dst, `,"object":"chat.completion","created":`...), b.Created, 10)
	dst = jsonbody.AppendString(append(dst, `,"model":`...), b.Model)
	dst = append(dst, `,"choices":[`...)
	var total translate.Outcome
	for i, c := range choices {
		dst = b.appendChoice(jsonbody.AppendComma(dst), i, c)
		total.Add(&c.outcome)
	}
	dst = appendUsage(append(dst, `],"usage":`...), total.Usage)
	if b.Fingerprint != "" {
		dst = jsonbody.AppendString(append(dst, `,"system_fingerprint":`...), b.Fingerprint)
	}
	if b.Extra != nil {
		all := total // a copy, which is on the heap
		dst = append(append(dst, ','), b.Extra(&all)...)
	}
	return append(dst, '}')
}

func appendUsage(dst []byte, u translate.Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), int64(u.Prompt), 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(u.Completion), 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(u.Prompt+u.Completion), 10)
	dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.Cached), 10)
	if u.Reasoning > 0 {
		thoughts := int64(min(u.Reasoning, u.Completion))
		dst = strconv.AppendInt(append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...), thoughts, 10)
	}
	return append(dst, "}}"...)
}

// Add gathers an event.
func (c *ChatChoice) Add(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		c.text.WriteString(ev.Text)
	case translate.Reasoning:
		c.reasoning.WriteString(ev.Text)
	case translate.CallStart:
		c.calls = append(c.calls, chatCall{ID: ev.ID, name: ev.Name})
		c.args = append(c.args, nil)
		c.indexes = append(c.indexes, ev.Index)
	case translate.CallArgs:
		if n := lastOf(c.indexes, ev.Index); n >= 0 {
			c.args[n] = append(c.args[n], ev.Text...)
		}
	case translate.Logprobs:
		c.logprobs = append(c.logprobs, gjson.ParseBytes(ev.Content).Array()...)
	default:
		c.outcome.Note(ev)
	}
}

// lastOf returns the position of the last call with the engine's index, or -1. An engine may use an index twice.
func lastOf(indexes []int, index int) int {
	for n := range slices.Backward(indexes) {
		if indexes[n] == index {
			return n
		}
	}
	return -1
}

// appendChoice appends a choice. Its refusals are always null, but required by clients' types.
func (b *ChatBody) appendChoice(dst []byte, index int, c *ChatChoice) []byte {
	calls, unparsed := c.wellFormed(b.Custom)
	for i := range calls {
		calls[i].ID = chatCallID(calls[i].ID, b.ID, index, i)
	}
	if b.SingleCall && len(calls) > 1 {
		calls = calls[:1]
	}
	c.outcome.Agree(len(calls))
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	dst = append(dst, `,"message":{"role":"assistant","content":`...)
	if text := c.text.String() + unparsed; text != "" || len(calls) == 0 {
		dst = jsonbody.AppendString(dst, text)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"refusal":null`...)
	if c.reasoning.Len() > 0 {
		name := `,"reasoning":`
		if b.Reasoning == ReasoningContent {
			name = `,"reasoning_content":`
		}
		dst = jsonbody.AppendString(append(dst, name...), c.reasoning.String())
	}
	if len(calls) > 0 {
		dst = append(append(dst, `,"tool_calls":`...), jsonbody.AppendJSON(nil, calls)...)
	}
	dst = appendLogprobs(append(dst, `},"logprobs":`...), c.logprobs, b.OnlyChosen)
	return append(jsonbody.AppendString(append(dst, `,"finish_reason":`...), string(c.outcome.Reason)), '}')
}

func appendLogprobs(dst []byte, tokens []gjson.Result, onlyChosen bool) []byte {
	if len(tokens) == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	for _, token := range tokens {
		dst = jsonbody.AppendLogprob(jsonbody.AppendComma(dst), token, onlyChosen, "null")
	}
	return append(dst, `],"refusal":null}`...)
}

// chatCallID returns the id of a call: the engine's if it gives one.
func chatCallID(id, answer string, choice, call int) string {
	return cmp.Or(id, "call_"+strings.TrimPrefix(answer, "chatcmpl-")+"_"+strconv.Itoa(choice)+"_"+strconv.Itoa(call))
}

// wellFormed returns the valid calls. Invalid ones become content: those cut off by the token limit, and those whose arguments
// aren't a JSON object. custom are the names of the custom tools, which take any text.
func (c *ChatChoice) wellFormed(custom map[string]bool) (calls []chatCall, unparsed string) {
	for i, call := range c.calls {
		call.Type = "function"
		isCut := c.outcome.Reason == translate.FinishLength
		switch args := c.args[i]; {
		case custom[call.name] && (!isCut || jsonbody.IsObject(args)):
			call.Type, call.Custom = "custom", &chatCustom{call.name, request.CustomInput(string(args))}
		case len(args) == 0 && !isCut:
			call.Function = &chatFunction{call.name, "{}"} // the tool has no parameters
		case jsonbody.IsObject(args):
			call.Function = &chatFunction{call.name, string(args)}
		default:
			unparsed += `{"name":` + string(jsonbody.AppendString(nil, call.name)) + `,"arguments":` + string(args)
			if !isCut {
				unparsed += "}"
			}
			continue
		}
		calls = append(calls, call)
	}
	return calls, unparsed
}

// Envelope has the common members of all chunks and of the body of an answer.
type Envelope struct {
	ID          string // "chatcmpl-…"
	Created     int64  // Unix time, in seconds
	Model       string // the instance that answers
	Fingerprint string // of the engine
}

// Extra returns additional JSON members, without braces, of a body or the last chunk of a stream, by the outcome of all choices.
type Extra func(*translate.Outcome) []byte

// ReasoningField is the name of the member with the model's thinking.
type ReasoningField string

// The two names in use.
const (
	ReasoningPlain   ReasoningField = "reasoning"         // the specification's default
	ReasoningContent ReasoningField = "reasoning_content" // what many clients read
)

// Errors writes errors in the format of OpenAI's API. The official clients choose their exceptions by these types and codes.
type Errors struct{}

// Status returns the status of the error's kind.
func (Errors) Status(e *translate.Error) int { return e.Status() }

// AppendError appends {"error":{"message","type","param","code"}}, always with all four members.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	kind := cmp.Or(errorTypes[e.Kind], "invalid_request_error")
	return jsonbody.AppendJSON(dst, ErrorBody{ErrorObject{e.Message, kind, jsonbody.OrNull(e.Param), jsonbody.OrNull(e.EffectiveCode())}})
}

// errorTypes are the types of errors other than "invalid_request_error".
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:     "server_error",
	translate.KindQueueFull:    "rate_limit_exceeded",
	translate.KindEngineFailed: "server_error",
	translate.KindUnavailable:  "server_error",
	translate.KindStalled:      "server_error",
	translate.KindRateLimited:  "rate_limit_exceeded",
	translate.KindHubFailed:    "server_error",
	translate.KindHubBusy:      "server_error",
	translate.KindDiskFull:     "server_error",
}

type (
	// ErrorBody is the body of an error response.
	ErrorBody struct {
		Error ErrorObject `json:"error"`
	}
	// ErrorObject is the error in it.
	ErrorObject struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
)
