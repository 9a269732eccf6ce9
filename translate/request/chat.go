package request

import (
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Chat is what a chat request asks for, but for what only the engine has to know of. The fields that have to be written
// otherwise than the client did are in the edit.
type Chat struct {
	N          int  // choices
	SingleCall bool // parallel_tool_calls is false
	Logprobs   bool // log probabilities are wanted
	OnlyChosen bool // log probabilities are wanted of the chosen tokens alone
	Timings    bool // the engine's own measurements are wanted in a stream
	Forced     bool // the answer has to be a call of one of the tools
	Thinks     bool // the model may think before it answers
	Stops      []string
	Seed       int
	HasSeed    bool

	Edit  jsonbody.Edit
	Limit int // tokens that each choice may have, whatever the token of who asks allows; 0: as many as the request says
}
