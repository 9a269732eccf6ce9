package request

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Chat is a chat request, without the fields that only the engine needs. Edit has the fields that the engine is sent in
// another form than the client's.
type Chat struct {
	N          int     // number of choices
	NoTools    bool    // the model is offered no tools
	SingleCall bool    // parallel_tool_calls is false
	Logprobs   bool    // the client wants log probabilities
	OnlyChosen bool    // the client wants log probabilities of the chosen tokens only
	Timings    bool    // the client wants the engine's measurements in the stream
	Forced     bool    // the answer must be a call of one of the tools
	Either     *Either // the answer may be such a call, but otherwise has to be in a format; nil: there is no format, or no call
	Thinks     bool    // the model may think before it answers
	Stops      []string
	Seed       int
	HasSeed    bool

	Edit  jsonbody.Edit
	Limit int // maximum number of tokens of each choice besides that of the client's token; 0 if the request sets it
}

// OffersTools reports whether the model is offered tools by a chat's request.
func (c *Chat) OffersTools(body *jsonbody.Body) bool {
	return gjson.GetBytes(c.Edit.Value(body, "tools"), "0").Exists() && gjson.ParseBytes(c.Edit.Value(body, "tool_choice")).Str != "none"
}
