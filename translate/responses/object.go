package responses

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
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

// appendObject appends the response of an answer.
func (a *Answer) appendObject(dst []byte) []byte {
	o := object{
		ID: a.ID, Object: "response", Created: a.Created.Unix(), Status: a.Status(), Error: a.failure, Model: a.Model, Output: []json.RawMessage{},
	}
	if r := a.Request; r != nil {
		o.Previous, o.echo = orNil(r.Previous), r.echo
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
