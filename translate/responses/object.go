package responses

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// Status is the status of a response.
type Status string

// The statuses of responses.
const (
	Queued     Status = "queued"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Incomplete Status = "incomplete"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

type (
	// object is a response, with all members that one of the official or the Open Responses' types requires.
	object struct {
		ID          string            `json:"id"`
		Object      string            `json:"object"`
		Created     int64             `json:"created_at"`
		CompletedAt *int64            `json:"completed_at"`
		Status      Status            `json:"status"`
		Error       *failure          `json:"error"`
		Details     *details          `json:"incomplete_details"`
		Model       string            `json:"model"`
		Previous    *string           `json:"previous_response_id"`
		Output      []json.RawMessage `json:"output"`
		echo
		Usage *usage `json:"usage"` // null until the end
	}
	details struct {
		Reason string `json:"reason"`
	}
	usage struct {
		Input   int           `json:"input_tokens"`
		Cached  inputDetails  `json:"input_tokens_details"`
		Output  int           `json:"output_tokens"`
		Thought outputDetails `json:"output_tokens_details"`
		Total   int           `json:"total_tokens"`
	}
	inputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"` // always 0: the cache costs nothing here
	}
	outputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	}
)

// limitReached is the reason why a response is incomplete.
var limitReached = &details{"max_output_tokens"}

func usageOf(u translate.Usage) *usage {
	return &usage{u.Prompt, inputDetails{Cached: u.Cached}, u.Completion, outputDetails{u.Reasoning}, u.Prompt + u.Completion}
}

func (a *Answer) appendObject(dst []byte) []byte {
	o := object{
		ID: a.ID, Object: "response", Created: a.Created.Unix(), Status: a.Status(), Error: a.failure, Model: a.Model,
		Output: []json.RawMessage{},
	}
	if r := a.Request; r != nil {
		o.Previous, o.echo = jsonbody.OrNull(r.Previous), r.echo
	}
	for _, out := range a.outputs {
		if out.index >= 0 {
			o.Output = append(o.Output, out.append(nil))
		}
	}
	if a.isOver() {
		o.CompletedAt, o.Usage = a.completedAt(), usageOf(a.Usage())
	}
	if o.Status == Incomplete {
		o.Details = limitReached
	}
	return jsonbody.AppendJSON(dst, o)
}

// dialect marks the stored turns of this API.
const dialect = "responses"

type storedEcho struct {
	Dialect     string   `json:"dialect"`
	CompletedAt *int64   `json:"completed_at,omitempty"`
	Error       *failure `json:"error,omitempty"`
	Status      Status   `json:"status,omitempty"` // if a store has no word for it
	echo
}

// Echo returns what is needed beside the items to show the response later.
func (a *Answer) Echo() json.RawMessage {
	e := storedEcho{Dialect: dialect, CompletedAt: a.completedAt(), Error: a.failure}
	if a.status == Cancelled {
		e.Status = Cancelled
	}
	if a.Request != nil {
		e.echo = a.Request.echo
	}
	return jsonbody.AppendJSON(nil, e)
}

// IsEcho reports whether a stored turn is a response of this API. Those of other APIs must not be shown or continued here.
func IsEcho(raw json.RawMessage) bool {
	var e struct{ Dialect string }
	return json.Unmarshal(raw, &e) == nil && e.Dialect == dialect
}

// Stored is a stored response.
type Stored struct {
	ID, Previous string
	Model        string
	Created      time.Time
	Status       Status
	Echo         json.RawMessage // as returned by [Answer.Echo]
	Out          []translate.Item
	Usage        translate.Usage
}

// AppendStored appends a stored response.
func AppendStored(dst []byte, s Stored) []byte {
	var e storedEcho
	_ = json.Unmarshal(s.Echo, &e) // it was encoded here
	o := object{
		ID: s.ID, Object: "response", Created: s.Created.Unix(), CompletedAt: e.CompletedAt, Status: s.Status, Error: e.Error,
		Model: s.Model, Previous: jsonbody.OrNull(s.Previous), Output: OutputItems(s.Out), echo: e.echo,
	}
	if e.Status != "" && s.Status != Queued && s.Status != InProgress {
		o.Status = e.Status
	}
	switch o.Status {
	case Queued, InProgress:
	case Failed:
		if o.Error == nil {
			o.Error = &failure{"server_error", "The response was lost when the server stopped. Send the request again."}
		}
		o.Usage = usageOf(s.Usage)
	case Incomplete:
		o.Details, o.Usage = limitReached, usageOf(s.Usage)
	default:
		o.Usage = usageOf(s.Usage)
	}
	return jsonbody.AppendJSON(dst, o)
}

// WithIDs returns the items of a response's input, each with an id: the client's, or one of the response's.
func WithIDs(id string, items []translate.Item) []translate.Item {
	all := make([]translate.Item, len(items))
	for i, item := range items {
		if all[i] = item; item.ID == "" {
			all[i].ID = ItemID(id, prefixOf(&item), firstInput+i)
		}
	}
	return all
}

// InputItems returns the items of a response's input as JSON, each with an id.
func InputItems(id string, items []translate.Item) []json.RawMessage {
	return OutputItems(WithIDs(id, items))
}

// SummaryItem returns the item that stands for a conversation in later requests. id is that of the response that made it.
func SummaryItem(id, summary string) translate.Item {
	return translate.Item{ID: ItemID(id, summaryPrefix, 0), Kind: translate.ItemSummary, Parts: []translate.Part{{Text: summary}}}
}

type compaction struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created_at"`
	Output  []json.RawMessage `json:"output"`
	Usage   *usage            `json:"usage"`
}

// AppendCompaction appends the answer to POST /v1/responses/compact. output are the items that stand for the conversation.
func AppendCompaction(dst []byte, id string, created time.Time, output []translate.Item, usage translate.Usage) []byte {
	return jsonbody.AppendJSON(dst, compaction{id, "response.compaction", created.Unix(), InputItems(id, output), usageOf(usage)})
}

// idPrefix starts the ids of responses. A response's id is the prefix and hexadecimal digits.
const idPrefix = "resp_"

// Prefixes of the ids of items.
const (
	messagePrefix   = "msg"
	reasoningPrefix = "rs"
	functionPrefix  = "fc"
	resultPrefix    = "fco"
	customPrefix    = "ctc"
	outputPrefix    = "ctco" // of the result of a custom tool
	mcpCallPrefix   = "mcp"
	toolListPrefix  = "mcpl"
	summaryPrefix   = "cmp"
	foreignPrefix   = "item"
)

var prefixes = []string{
	messagePrefix, reasoningPrefix, functionPrefix, resultPrefix, customPrefix, outputPrefix, mcpCallPrefix, toolListPrefix,
	summaryPrefix, foreignPrefix,
}

// The number at the end of an item's id has numberDigits hexadecimal digits. Those of the input start at firstInput.
const (
	numberDigits = 6
	firstInput   = 1 << 20
)

// ItemID returns the id of the n-th item of a response: of its output, or from firstInput on of its input. It has the response's id
// in it, so that an item is found without an index.
func ItemID(responseID, prefix string, n int) string {
	return fmt.Sprintf("%s_%s%0*x", prefix, strings.TrimPrefix(responseID, idPrefix), numberDigits, n)
}

// ResponseOf returns the response that an item's id names, and the item's number. ok is false for an id of other origin.
func ResponseOf(itemID string) (responseID string, n int, ok bool) {
	prefix, rest, _ := strings.Cut(itemID, "_")
	at := len(rest) - numberDigits
	if at <= 0 || !slices.Contains(prefixes, prefix) {
		return "", 0, false
	}
	number, err := strconv.ParseUint(rest[at:], 16, 32)
	if err != nil || strings.Trim(rest, "0123456789abcdef") != "" {
		return "", 0, false
	}
	return idPrefix + rest[:at], int(number), true
}

func prefixOf(item *translate.Item) string {
	switch {
	case item.Kind == translate.ItemReasoning:
		return reasoningPrefix
	case item.Kind == translate.ItemToolList:
		return toolListPrefix
	case item.Kind == translate.ItemSummary:
		return summaryPrefix
	case item.Kind == translate.ItemForeign:
		return foreignPrefix
	case item.Kind == translate.ItemResult && item.Custom:
		return outputPrefix
	case item.Kind == translate.ItemResult:
		return resultPrefix
	case item.Kind == translate.ItemMessage:
		return messagePrefix
	case item.Custom:
		return customPrefix
	case item.Provider != nil:
		return mcpCallPrefix
	default:
		return functionPrefix
	}
}

// previousNotFound is the code of a previous_response_id that is unknown.
const previousNotFound = "previous_response_not_found"

// Errors writes errors in the format of OpenAI's API, with the statuses and codes of the Responses API.
type Errors struct{}

// Status returns the status of the error's kind, except for an MCP server that failed, and for a previous response.
func (Errors) Status(e *translate.Error) int {
	switch {
	case isExternal(e) && e.EffectiveCode() == "":
		return http.StatusFailedDependency
	case e.Code == previousNotFound:
		return http.StatusBadRequest
	default:
		return e.Status()
	}
}

// AppendError appends {"error":{"message","type","param","code"}}, always with all four members.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return jsonbody.AppendJSON(dst, openai.ErrorBody{Error: errorObjectOf(e)})
}

func errorObjectOf(e *translate.Error) openai.ErrorObject {
	o := openai.ErrorObject{
		Type: "invalid_request_error", Code: jsonbody.OrNull(e.EffectiveCode()), Message: e.Message, Param: jsonbody.OrNull(e.Param),
	}
	switch status := e.Status(); {
	case isExternal(e) && o.Code == nil:
		o.Type, o.Code, o.Param = "external_connector_error", jsonbody.OrNull("http_error"), jsonbody.OrNull("tools")
	case e.Kind == translate.KindResponseNotFound && e.Code == "":
		o.Code = nil
	case status == http.StatusTooManyRequests:
		o.Type = "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		o.Type = "server_error"
	}
	return o
}

func isExternal(e *translate.Error) bool {
	return e.Kind == translate.KindMCPFailed || e.Kind == translate.KindPluginFailed
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// failureOf returns the failure in the words of the Responses API. Agents know "context_length_exceeded", too.
func failureOf(e *translate.Error) *failure {
	f := &failure{Code: "server_error", Message: e.Message}
	switch status := e.Status(); {
	case e.Kind == translate.KindContextOverflow:
		f.Code = e.EffectiveCode()
	case status == http.StatusTooManyRequests:
		f.Code = "rate_limit_exceeded"
	case status < http.StatusInternalServerError && !isExternal(e):
		f.Code = "invalid_prompt"
	}
	return f
}
