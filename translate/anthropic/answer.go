package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Answer gathers the events of one upstream request for an answer in one piece.
type Answer struct {
	ID            string // "msg_…"
	Model         string // the instance that answers
	ContextLength int    // of the instance, in tokens
	Thinking      Thinking
	SingleCall    bool // keep only the first of parallel tool calls

	blocks  []*block
	outcome translate.Outcome
}

type blockKind uint8

const (
	noBlock blockKind = iota
	thinkingBlock
	textBlock
	callBlock
)

type block struct {
	kind     blockKind
	text     strings.Builder // the arguments of a call
	id, name string          // of a call
	index    int             // of a call, among those of the answer
}

type (
	answerBody struct {
		ID           string            `json:"id"`
		Type         string            `json:"type"`
		Role         translate.Role    `json:"role"`
		Model        string            `json:"model"`
		Content      []json.RawMessage `json:"content"`
		StopReason   *string           `json:"stop_reason"`
		StopSequence *string           `json:"stop_sequence"`
		Usage        usage             `json:"usage"`
	}
	// usage counts cached tokens separately: the sum of the first three is the prompt.
	usage struct {
		Input         int `json:"input_tokens"`
		CacheCreation int `json:"cache_creation_input_tokens"` // always 0: the cache costs nothing here
		CacheRead     int `json:"cache_read_input_tokens"`
		Output        int `json:"output_tokens"`
	}
	textOf struct {
		Type string `json:"type"`
		Text string `json:"text"` // without citations: some clients reject null
	}
	thinkingOf struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	callOf struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// Add gathers an event.
func (a *Answer) Add(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Reasoning:
		if a.Thinking != ThinkingHidden {
			a.extend(thinkingBlock, ev.Text)
		}
	case translate.Text:
		a.extend(textBlock, ev.Text)
	case translate.CallStart:
		a.dropBlank()
		a.blocks = append(a.blocks, &block{kind: callBlock, id: ev.ID, name: ev.Name, index: ev.Index})
	case translate.CallArgs:
		for i := range slices.Backward(a.blocks) {
			if b := a.blocks[i]; b.kind == callBlock && b.index == ev.Index {
				b.text.WriteString(ev.Text)
				break
			}
		}
	default:
		a.outcome.Note(ev)
	}
}

func (a *Answer) extend(kind blockKind, text string) {
	if kind != textBlock {
		a.dropBlank()
	}
	if n := len(a.blocks); n == 0 || a.blocks[n-1].kind != kind {
		a.blocks = append(a.blocks, &block{kind: kind})
	}
	a.blocks[len(a.blocks)-1].text.WriteString(text)
}

// dropBlank removes the last block if it is text with only white space.
func (a *Answer) dropBlank() {
	if n := len(a.blocks); n > 0 && a.blocks[n-1].kind == textBlock && isBlank(a.blocks[n-1].text.String()) {
		a.blocks = a.blocks[:n-1]
	}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// AppendBody appends the answer's body.
func (a *Answer) AppendBody(dst []byte) []byte {
	content, calls := a.content()
	reason, sequence := stopReason(&a.outcome, a.ContextLength, calls)
	return jsonbody.AppendJSON(dst, answerBody{
		ID: a.ID, Type: "message", Role: translate.RoleAssistant, Model: a.Model, Content: content,
		StopReason: &reason, StopSequence: sequence, Usage: usageOf(a.outcome.Usage),
	})
}

// content returns the blocks without blank texts. A call that is cut off, or whose arguments aren't a JSON object, becomes text.
func (a *Answer) content() (content []json.RawMessage, calls int) {
	content = []json.RawMessage{}
	for _, b := range a.blocks {
		text := b.text.String()
		switch b.kind {
		case thinkingBlock:
			block := thinkingOf{"thinking", text, a.Thinking.signature([]byte(text))}
			if a.Thinking == ThinkingOmitted {
				block.Thinking = ""
			}
			content = append(content, jsonbody.AppendJSON(nil, block))
			continue
		case callBlock:
			if a.SingleCall && calls > 0 {
				continue
			}
			if text == "" && a.outcome.Reason != translate.FinishLength {
				text = "{}" // the tool has no parameters
			}
			if jsonbody.IsObject([]byte(text)) {
				call := callOf{"tool_use", callID(b.id, a.ID, calls), b.name, json.RawMessage(text)}
				content = append(content, jsonbody.AppendJSON(nil, call))
				calls++
				continue
			}
			text = `{"name":` + string(jsonbody.AppendString(nil, b.name)) + `,"arguments":` + text
			if a.outcome.Reason != translate.FinishLength {
				text += "}"
			}
		}
		if !isBlank(text) {
			content = append(content, jsonbody.AppendJSON(nil, textOf{Type: "text", Text: text}))
		}
	}
	return content, calls
}

// callID returns the id of a call: the engine's if it gives one.
func callID(id, answer string, index int) string {
	return cmp.Or(id, "toolu_"+strings.TrimPrefix(answer, "msg_")+"_"+strconv.Itoa(index))
}

func usageOf(u translate.Usage) usage {
	return usage{Input: max(0, u.Prompt-u.Cached), CacheRead: u.Cached, Output: u.Completion}
}

func stopReason(o *translate.Outcome, contextLength, calls int) (reason string, sequence *string) {
	switch stop := o.StopReason(contextLength); {
	case stop == translate.StopContext:
		return "model_context_window_exceeded", nil
	case stop == translate.StopMaxTokens:
		return "max_tokens", nil
	case calls > 0:
		return "tool_use", nil
	case stop == translate.StopString:
		return "stop_sequence", &o.Stop.Text
	default:
		return "end_turn", nil
	}
}

// Errors writes errors in the format of Anthropic's API.
type Errors struct{}

// Status returns the status of the error's kind, but 529 for 503 if a retry makes sense.
func (Errors) Status(e *translate.Error) int {
	status := e.Status()
	if status == http.StatusServiceUnavailable && e.IsRetryable() {
		return statusOverloaded
	}
	return status
}

// AppendError appends {"type":"error","error":{"type","message"},"request_id"}. The format has no field for the parameter at
// fault, so the message begins with it. Agents recognize a prompt that is too long by the words of the message.
func (d Errors) AppendError(dst []byte, e *translate.Error, requestID string) []byte {
	kind, message := cmp.Or(errorTypes[e.Kind], "invalid_request_error"), e.Message
	switch named := strings.TrimPrefix(message, `"`); {
	case e.Kind == translate.KindContextOverflow && e.Tokens > 0:
		most := e.Limit
		if e.Tokens == most { // room for the answer
			most--
		}
		message = "prompt is too long: " + strconv.Itoa(e.Tokens) + " tokens > " + strconv.Itoa(most) + " maximum"
	case e.Param != "" && !strings.HasPrefix(named, e.Param):
		message = e.Param + ": " + message
	}
	if d.Status(e) == http.StatusServiceUnavailable {
		kind = "api_error" // a retry makes no sense
	}
	body := errorBody{Type: "error", Error: errorObject{kind, message}}
	if requestID != "" {
		body.RequestID = &requestID
	}
	return jsonbody.AppendJSON(dst, body)
}

// errorTypes are the types of errors other than "invalid_request_error".
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:         "api_error",
	translate.KindModelNotFound:    "not_found_error",
	translate.KindResponseNotFound: "not_found_error",
	translate.KindPathNotFound:     "not_found_error",
	translate.KindTooLarge:         "request_too_large",
	translate.KindQueueFull:        "rate_limit_error",
	translate.KindEngineFailed:     "api_error",
	translate.KindUnavailable:      "overloaded_error",
	translate.KindStalled:          "timeout_error",
	translate.KindForbidden:        "permission_error",
	translate.KindUnauthorized:     "authentication_error",
	translate.KindRateLimited:      "rate_limit_error",
	translate.KindJobNotFound:      "not_found_error",
	translate.KindHubFailed:        "api_error",
	translate.KindHubBusy:          "overloaded_error",
	translate.KindDiskFull:         "api_error",
}

// statusOverloaded is what Anthropic's API uses for 503. Clients retry after a while.
const statusOverloaded = 529

type (
	errorBody struct {
		Type      string      `json:"type"`
		Error     errorObject `json:"error"`
		RequestID *string     `json:"request_id"`
	}
	errorObject struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)
