package responses

import (
	"encoding/json"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// dialect marks the stored turns of this API.
const dialect = "responses"

// storedEcho is what is stored of a response beside its items.
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
		ID: s.ID, Object: "response", Created: s.Created.Unix(), CompletedAt: e.CompletedAt, Status: s.Status, Error: e.Error, Model: s.Model,
		Previous: orNil(s.Previous), Output: OutputItems(s.Out), echo: e.echo,
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

// SummaryItem returns the item of a conversation's summary, which stands for the conversation in later requests. id is that of the
// response that made it.
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
