package mcploop

import (
	"errors"
	"fmt"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Limits of the arguments of a call.
const (
	maxArgumentBytes  = 1 << 20
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
)

// refuse returns why a call with these arguments can't be made; empty if it can. What the model reads of it is meant to help it
// to correct the call.
func (o *offer) refuse(args []byte) string {
	if len(args) > maxArgumentBytes {
		return fmt.Sprintf("The arguments have %d bytes; at most %d are allowed.", len(args), maxArgumentBytes)
	}
	s := jsonbody.Scanner{Data: args}
	s.Space()
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad != nil || s.Pos != len(args) || !jsonbody.IsObject(args) {
		return "The arguments are not a valid JSON object."
	}
	if s.Values > maxArgumentValues {
		return fmt.Sprintf("The arguments have more than %d values.", maxArgumentValues)
	}
	if len(o.Schema) == 0 {
		return ""
	}
	checker, err := schema.NewChecker(o.Schema)
	if err != nil { // the server checks its arguments itself
		return ""
	}
	if err = checker.Check(args); err == nil || errors.Is(err, schema.ErrTooManySteps) {
		return ""
	}
	return "The arguments don't fit the tool's schema: " + err.Error()
}
