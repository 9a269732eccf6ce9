package translate

import (
	"encoding/json"
	"strconv"
	"strings"
)

// MessagesAnswer gathers an answer of the Messages API from the events of one upstream request.
type MessagesAnswer struct {
	ID            string // "msg_…"
	Model         string // the instance that answers
	ContextLength int    // its, in tokens
	Thinking      Thinking
	SingleCall    bool // of parallel tool calls only the first is kept

	blocks  []messagesBlock
	outcome Outcome
}

// blockKind is what a block of an answer is.
type blockKind uint8

const (
	noBlock blockKind = iota
	thinkingBlock
	textBlock
	callBlock
)

type messagesBlock struct {
	kind     blockKind
	text     strings.Builder // of a call: its arguments
	id, name string          // of a call
}

type (
	messagesBody struct {
		ID           string            `json:"id"`
		Type         string            `json:"type"`
		Role         Role              `json:"role"`
		Model        string            `json:"model"`
		Content      []json.RawMessage `json:"content"`
		StopReason   *string           `json:"stop_reason"`
		StopSequence *string           `json:"stop_sequence"`
		Usage        messagesUsage     `json:"usage"`
	}
	// messagesUsage has the cached tokens apart: the sum of the first three is the prompt.
	messagesUsage struct {
		Input         int `json:"input_tokens"`
		CacheCreation int `json:"cache_creation_input_tokens"` // always 0: nobody pays for the cache here
		CacheRead     int `json:"cache_read_input_tokens"`
		Output        int `json:"output_tokens"`
	}
	messagesText struct {
		Type string `json:"type"`
		Text string `json:"text"` // without citations: not every client takes null for "none"
	}
	messagesThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	messagesCall struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// Add gathers an event.
func (a *MessagesAnswer) Add(ev Event) {
	switch ev := ev.(type) {
	case Reasoning:
		if a.Thinking != ThinkingHidden {
			a.extend(thinkingBlock, ev.Text)
		}
	case Text:
		a.extend(textBlock, ev.Text)
	case CallStart:
		a.dropBlank()
		a.blocks = append(a.blocks, messagesBlock{kind: callBlock, id: ev.ID, name: ev.Name})
	case CallArgs:
		if n := len(a.blocks); n > 0 && a.blocks[n-1].kind == callBlock {
			a.blocks[n-1].text.WriteString(ev.Text)
		}
	default:
		a.outcome.note(ev)
	}
}

func (a *MessagesAnswer) extend(kind blockKind, text string) {
	if kind != textBlock {
		a.dropBlank()
	}
	if n := len(a.blocks); n == 0 || a.blocks[n-1].kind != kind {
		a.blocks = append(a.blocks, messagesBlock{kind: kind})
	}
	a.blocks[len(a.blocks)-1].text.WriteString(text)
}

// dropBlank takes away a text that turns out to be nothing but the space before what comes now.
func (a *MessagesAnswer) dropBlank() {
	if n := len(a.blocks); n > 0 && a.blocks[n-1].kind == textBlock && isBlank(a.blocks[n-1].text.String()) {
		a.blocks = a.blocks[:n-1]
	}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// AppendBody appends the answer's body.
func (a *MessagesAnswer) AppendBody(dst []byte) []byte {
	content, calls := a.content()
	reason, sequence := messagesStop(&a.outcome, a.ContextLength, calls)
	return appendJSON(dst, messagesBody{
		ID: a.ID, Type: "message", Role: RoleAssistant, Model: a.Model, Content: content,
		StopReason: &reason, StopSequence: sequence, Usage: messagesUsageOf(a.outcome.Usage),
	})
}

// content is the blocks, of which a text may not be blank. A call that the limit has cut, or whose arguments are no JSON
// object, is text: there is no other way to tell of it.
func (a *MessagesAnswer) content() (content []json.RawMessage, calls int) {
	content = []json.RawMessage{}
	for i := range a.blocks {
		b := &a.blocks[i]
		text := b.text.String()
		switch b.kind {
		case thinkingBlock:
			block := messagesThinking{"thinking", text, a.Thinking.signature([]byte(text))}
			if a.Thinking == ThinkingOmitted {
				block.Thinking = ""
			}
			content = append(content, appendJSON(nil, block))
			continue
		case callBlock:
			if a.SingleCall && calls > 0 {
				continue
			}
			if text == "" && a.outcome.Reason != FinishLength {
				text = "{}" // the tool takes none
			}
			if isObject([]byte(text)) {
				content = append(content, appendJSON(nil, messagesCall{"tool_use", callID(b.id, a.ID, calls), b.name, json.RawMessage(text)}))
				calls++
				continue
			}
			text = `{"name":` + string(appendString(nil, b.name)) + `,"arguments":` + text
			if a.outcome.Reason != FinishLength {
				text += "}"
			}
		}
		if !isBlank(text) {
			content = append(content, appendJSON(nil, messagesText{Type: "text", Text: text}))
		}
	}
	return content, calls
}

// callID is the id of a call: the engine's where it gives one.
func callID(id, answer string, index int) string {
	if id != "" {
		return id
	}
	return "toolu_" + strings.TrimPrefix(answer, "msg_") + "_" + strconv.Itoa(index)
}

func messagesUsageOf(u Usage) messagesUsage {
	return messagesUsage{Input: max(0, u.Prompt-u.Cached), CacheRead: u.Cached, Output: u.Completion}
}

// messagesStop says why generation ended, in the words of the Messages API, and at which stop sequence.
func messagesStop(o *Outcome, contextLength, calls int) (reason string, sequence *string) {
	switch stop := o.StopReason(contextLength); {
	case stop == StopContext:
		return "model_context_window_exceeded", nil
	case stop == StopMaxTokens:
		return "max_tokens", nil
	case calls > 0:
		return "tool_use", nil
	case stop == StopString:
		return "stop_sequence", &o.Stop.Text
	default:
		return "end_turn", nil
	}
}
