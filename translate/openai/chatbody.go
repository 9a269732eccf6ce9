package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// ChatBody is the body of an OpenAI-style chat completion, which is put together of a [ChatChoice] for each choice.
type ChatBody struct {
	Envelope
	Reasoning  ReasoningField
	SingleCall bool // of parallel tool calls only the first is kept
	OnlyChosen bool // log probabilities are of the chosen tokens alone
	Extra      Extra
}

// ChatChoice gathers the events of one upstream request.
type ChatChoice struct {
	text, reasoning strings.Builder
	calls           []chatCall
	args            [][]byte          // of each call, as they come
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
		Refusal          *string    `json:"refusal"` // always null, but clients' types want it
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
	case translate.CallArgs:
		if n := len(c.args); n > 0 {
			c.args[n-1] = append(c.args[n-1], ev.Text...)
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

// chatCallID is the id of a call: the engine's where it gives one.
func chatCallID(id, answer string, choice, call int) string {
	if id != "" {
		return id
	}
	return "call_" + strings.TrimPrefix(answer, "chatcmpl-") + "_" + strconv.Itoa(choice) + "_" + strconv.Itoa(call)
}

// wellFormed are the calls that a client can make. What the others are made of is content, as the model said it: a call
// that the token limit has cut, or whose arguments are no JSON object.
func (c *ChatChoice) wellFormed() (calls []chatCall, unparsed string) {
	for i, call := range c.calls {
		switch args := c.args[i]; {
		case len(args) == 0 && c.outcome.Reason != translate.FinishLength:
			call.Function.Arguments = "{}" // the tool takes none
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

// Envelope is what every chunk of an answer, and every body, says of it.
type Envelope struct {
	ID          string // "chatcmpl-…"
	Created     int64  // Unix time, in seconds
	Model       string // the instance that answers
	Fingerprint string // of the engine
}

// Extra makes further fields of an answer's body, or of its stream's last chunk: JSON members, without the braces. They
// are of all choices together.
type Extra func(*translate.Outcome) []byte

// ReasoningField is the name under which OpenAI-style answers carry the model's thinking.
type ReasoningField string

// The two names in use.
const (
	ReasoningPlain   ReasoningField = "reasoning"         // the specification's default
	ReasoningContent ReasoningField = "reasoning_content" // what many clients read
)
