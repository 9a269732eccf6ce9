package api

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// completions is POST /v1/completions and POST /api/v0/completions.
func completions(c *endpoint.Call) error {
	rq, err := textRequest(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	if _, ok := rq.engine.(wire.Completer); !ok {
		return completesNothing(rq.target.Model)
	}
	completion, bad := openai.ParseCompletion(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	if err := rq.reserveCompletion(completion); err != nil {
		return err
	}
	r := &completionRun{run: newRun(rq), completion: completion}
	defer r.close()
	r.chains = make([]prefix.Chain, len(completion.Prompts))
	for i := range r.chains {
		r.chains[i] = rq.chain(func(p wire.Prompter, m *prefix.Maker) { p.TextPrompt(rq.body, completion, i, m) })
	}
	r.left = len(completion.Prompts) * completion.BestOf
	r.candidates = make([]*openai.TextChoice, r.left)
	if err := together(c.Request.Context(), r.left, choicesAtOnce, r.candidate); err != nil {
		return refined(r.withFigures(err), completion.Refine)
	}
	if r.stream == nil {
		total := openai.Total(r.candidates, completion.BestOf)
		more := r.more(total)
		c.WriteJSON(http.StatusOK, r.answer.Body(r.best(), total.Usage, more))
	}
	return nil
}
