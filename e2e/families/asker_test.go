// Package families checks what clients may ask of models of any family: each kind of chat template and architecture, in every dialect. The models have
// random weights. What a template makes of a request, what is forced, refused and cached is real; what they say is noise.
package families

import (
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// asker asks one model.
type asker struct {
	s   *harness.Server
	key string
}

// post sends a request for the model, and returns the answer, whose status must be 200.
func (a asker) post(path string, request harness.Fields) (gjson.Result, error) {
	reply, err := a.s.Try(path, request.With("model", a.key).With("stream", false))
	switch {
	case err != nil:
		return gjson.Result{}, err
	case reply.Status != http.StatusOK:
		return gjson.Result{}, fmt.Errorf("status %d: %s", reply.Status, short(reply.Body))
	}
	return gjson.Parse(reply.Body), nil
}

// prompt sends a request to one of the dialects, and returns how many tokens its prompt has.
func (a asker) prompt(d harness.Dialect, turns []harness.Message, more harness.Fields) (int, error) {
	answer, err := a.post(d.Path, d.Request(turns, more))
	tokens := 0
	for _, n := range answer.Get(d.PromptSize).Array() {
		tokens += int(n.Int())
	}
	return tokens, err
}

func short(text string) string {
	const enough = 300
	if len(text) > enough {
		return text[:enough] + "…"
	}
	return text
}
