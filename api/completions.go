package api

import (
	"errors"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// completions is POST /v1/completions and POST /api/v0/completions.
func (c *call) completions() error {
	rq, err := c.request()
	if err != nil {
		return err
	}
	if m := rq.target.Model; m.Type == catalog.TypeEmbedding {
		return wrongModel(m, "generates no text: choose a language model.")
	}
	completer, ok := rq.engine.(wire.Completer)
	if !ok {
		return wrongEngine(rq.target.Model, "completes no texts: use /v1/chat/completions, or choose another model.")
	}
	ask, bad := openai.ParseCompletion(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	if err := c.reserveCompletion(rq, ask); err != nil {
		return err
	}
	run := &textRun{call: c, rq: rq, completer: completer, ask: ask, candidates: make([]*openai.TextChoice, len(ask.Prompts)*ask.BestOf)}
	run.left = len(run.candidates)
	if rq.stream {
		run.stream = c.newStream()
		defer run.stream.close()
	}
	defer func() { c.used(rq, run.usage()) }()
	if err := run.all(); err != nil {
		if rq.stream {
			run.stream.atFault = c.atFault(run.instance, rq.demand.Draft, run.first)
		}
		return refined(err, ask.Refine)
	}
	if !rq.stream {
		total := openai.Total(run.candidates, ask.BestOf)
		more := run.more(total)
		c.writeJSON(http.StatusOK, run.answer.Body(run.choices(), total.Usage, more))
	}
	return nil
}

// wrongModel is the error of a request whose model is of another kind than the endpoint's.
func wrongModel(m catalog.Model, why string) error {
	return translate.Invalid("unsupported_model", "model", "The model "+m.Key+" "+why)
}

// wrongEngine is the error of a request whose model is run by an engine that can't do what the endpoint is for.
func wrongEngine(m catalog.Model, why string) error {
	return translate.Invalid("unsupported_model", "model", "The engine of the model "+m.Key+" "+why)
}

// refined lets a request have a say in how an error is told.
func refined(err error, refine func(*translate.Error) *translate.Error) error {
	if known, ok := errors.AsType[*translate.Error](err); ok {
		return refine(known)
	}
	return err
}
