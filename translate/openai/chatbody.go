package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// ChatBody is the body of a chat completion, made of a [ChatChoice] for each choice.
type ChatBody struct {
	Envelope
	Reasoning  ReasoningField
	SingleCall bool // keep only the first of parallel tool calls
	OnlyChosen bool // list log probabilities of the chosen tokens only
	Extra      Extra
}

// ChatChoice gathers the events of one upstream request.
type ChatChoice struct {
	text, reasoning strings.Builder
	calls           []chatCall
	args            [][]byte          // arguments of each call
	indexes         []int             // the engine's indexes of the calls
	logprobs        []json.RawMessage // as the engine wrote them
	outcome         translate.Outcome
}

type (
	chatCompletion struct {
		ID          string       `json:"id"`
		Object      string       `json:"object"`
		Created     int64        `json:"created"`
		Model       string       `json:"model"`
		Choices     []chatChoice `json:"choices"`
		Usage       chatUsage    `json:"usage"`
		Fingerprint string       `json:"system_fingerprint,omitempty"`
	}
	chatChoice struct {
		Index    int                    `json:"index"`
		Message  chatMessage            `json:"message"`
		Logprobs *chatLogprobs          `json:"logprobs"`
		Finish   translate.FinishReason `json:"finish_reason"`
	}
	chatMessage struct {
		Role             string     `json:"role"`
		Content          *string    `json:"content"`
		Refusal          *string    `json:"refusal"` // always null, but required by clients' types
		Reasoning        string     `json:"reasoning,omitempty"`
		ReasoningContent string     `json:"reasoning_content,omitempty"`
		Calls            []chatCall `json:"tool_calls,omitempty"`
	}
	chatCall struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	chatLogprobs struct {
		Content []json.RawMessage `json:"content"`
		Refusal *string           `json:"refusal"` // always null
	}
	chatUsage struct {
		Prompt     int                  `json:"prompt_tokens"`
		Completion int                  `json:"completion_tokens"`
		Total      int                  `json:"total_tokens"`
		Details    chatPromptDetails    `json:"prompt_tokens_details"`
		Generated  *chatGeneratedDetail `json:"completion_tokens_details,omitempty"`
	}
	chatPromptDetails struct {
		Cached int `json:"cached_tokens"`
	}
	chatGeneratedDetail struct {
		Reasoning int `json:"reasoning_tokens"`
	}
)

func chatUsageOf(u translate.Usage) chatUsage {
	c := chatUsage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion, Details: chatPromptDetails{u.Cached}}
	if u.Reasoning > 0 {
		c.Generated = &chatGeneratedDetail{min(u.Reasoning, u.Completion)}
	}
	return c
}

// AppendBody appends the body of an answer, all of whose choices have finished.
func (b *ChatBody) AppendBody(dst []byte, choices []*ChatChoice) []byte {
	var total translate.Outcome
	made := chatCompletion{
		ID: b.ID, Object: "chat.completion", Created: b.Created, Model: b.Model, Fingerprint: b.Fingerprint,
		Choices: make([]chatChoice, len(choices)),
	}
	for i, c := range choices {
		made.Choices[i] = b.choice(i, c)
		total.Add(&c.outcome)
	}
	made.Usage = chatUsageOf(total.Usage)
	dst = jsonbody.AppendJSON(dst, made)
	if b.Extra == nil {
		return dst
	}
	dst = append(dst[:len(dst)-1], ',')
	return append(append(dst, b.Extra(&total)...), '}')
}

// Add gathers an event.
func (c *ChatChoice) Add(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		c.text.WriteString(ev.Text)
	case translate.Reasoning:
		c.reasoning.WriteString(ev.Text)
	case translate.CallStart:
		call := chatCall{ID: ev.ID, Type: "function"}
		call.Function.Name = ev.Name
		c.calls = append(c.calls, call)
		c.args = append(c.args, nil)
		c.indexes = append(c.indexes, ev.Index)
	case translate.CallArgs:
		if n := lastOf(c.indexes, ev.Index); n >= 0 {
			c.args[n] = append(c.args[n], ev.Text...)
		}
	case translate.Logprobs:
		var tokens []json.RawMessage
		if json.Unmarshal(ev.Content, &tokens) == nil {
			c.logprobs = append(c.logprobs, tokens...)
		}
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

func (b *ChatBody) choice(index int, c *ChatChoice) chatChoice {
	calls, unparsed := c.wellFormed()
	for i := range calls {
		calls[i].ID = chatCallID(calls[i].ID, b.ID, index, i)
	}
	if b.SingleCall && len(calls) > 1 {
		calls = calls[:1]
	}
	text := c.text.String() + unparsed
	message := chatMessage{Role: "assistant", Calls: calls}
	if text != "" || len(calls) == 0 {
		message.Content = &text
	}
	if b.Reasoning == ReasoningContent {
		message.ReasoningContent = c.reasoning.String()
	} else {
		message.Reasoning = c.reasoning.String()
	}
	c.outcome.Agree(len(calls))
	made := chatChoice{Index: index, Message: message, Finish: c.outcome.Reason}
	if len(c.logprobs) > 0 {
		made.Logprobs = &chatLogprobs{Content: make([]json.RawMessage, len(c.logprobs))}
		for i, token := range c.logprobs {
			made.Logprobs.Content[i] = appendChatLogprob(nil, gjson.ParseBytes(token), b.OnlyChosen)
		}
	}
	return made
}

// chatCallID returns the id of a call: the engine's if it gives one.
func chatCallID(id, answer string, choice, call int) string {
	if id != "" {
		return id
	}
	return "call_" + strings.TrimPrefix(answer, "chatcmpl-") + "_" + strconv.Itoa(choice) + "_" + strconv.Itoa(call)
}

// wellFormed returns the valid calls. Invalid ones become content: those cut off by the token limit, and those whose arguments
// aren't a JSON object.
func (c *ChatChoice) wellFormed() (calls []chatCall, unparsed string) {
	for i, call := range c.calls {
		switch args := c.args[i]; {
		case len(args) == 0 && c.outcome.Reason != translate.FinishLength:
			call.Function.Arguments = "{}" // the tool has no parameters
		case jsonbody.IsObject(args):
			call.Function.Arguments = string(args)
		default:
			unparsed += `{"name":` + string(jsonbody.AppendString(nil, call.Function.Name)) + `,"arguments":` + string(args)
			if c.outcome.Reason != translate.FinishLength {
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

// Extra returns additional JSON members, without braces, for the body of an answer or the last chunk of its stream. The outcome
// is that of all choices.
type Extra func(*translate.Outcome) []byte

// ReasoningField is the name of the member with the model's thinking.
type ReasoningField string

// The two names in use.
const (
	ReasoningPlain   ReasoningField = "reasoning"         // the specification's default
	ReasoningContent ReasoningField = "reasoning_content" // what many clients read
)
