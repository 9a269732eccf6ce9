package request

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Chat is a chat request, without the fields that only the engine needs. Edit has the fields that the engine is sent in
// another form than the client's.
type Chat struct {
	N          int             // number of choices
	NoTools    bool            // the model is offered no tools
	SingleCall bool            // parallel_tool_calls is false
	Logprobs   bool            // the client wants log probabilities
	OnlyChosen bool            // the client wants log probabilities of the chosen tokens only
	Timings    bool            // the client wants the engine's measurements in the stream
	Forced     bool            // the answer must be a call of one of the tools
	Either     *Either         // the answer may be such a call, but otherwise has to be in a format; nil: there is no format, or no call
	Promises   Promises        // what of the answer is checked when it is complete
	Custom     map[string]bool // the names of the custom tools among those that the model is offered; nil: there are none
	Thinks     bool            // the model may think before it answers
	Stops      []string

	Setting Setting // of how much the model thinks; the engine of a model whose template is known refuses one that isn't offered

	Edit   jsonbody.Edit
	format *schema.Promise // of the answer's text; nil if it has none

	Limit int // maximum number of tokens of each choice besides that of the client's token; 0 if the request sets it
}

// OffersTools reports whether the model is offered tools by a chat's request.
func (c *Chat) OffersTools(body *jsonbody.Body) bool {
	return gjson.GetBytes(c.Edit.Value(body, "tools"), "0").Exists() && gjson.ParseBytes(c.Edit.Value(body, "tool_choice")).Str != "none"
}

// Blame returns an engine's error about its request as one about the client's, which may have no such field: what makes an answer a
// call is a format for the engine.
func (c *Chat) Blame(body *jsonbody.Body, e *translate.Error) *translate.Error {
	isGiven := func(name string) bool { return jsonbody.IsGiven(c.Edit.Value(body, name)) }
	if e.Kind != translate.KindInvalid || e.Param != "response_format" || isGiven(e.Param) && !c.Forced {
		return e
	}
	about := *e
	switch {
	case e.Code == translate.FormatNotMet:
		return translate.Unparsed()
	case c.OffersTools(body):
		about.Param = "tools"
	case isGiven("grammar"):
		about.Param = "grammar"
	default:
		return &translate.Error{Kind: translate.KindInternal, Message: e.Message}
	}
	return &about
}
