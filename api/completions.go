package api

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// completions is POST /v1/completions and POST /api/v0/completions.
func completions(c *endpoint.Call) error {
	rq, err := text.Read(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	if _, ok := rq.Engine.(wire.Completer); !ok {
		return text.CompletesNothing(rq.Target.Model)
	}
	completion, bad := openai.ParseCompletion(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	if err := rq.ReserveCompletion(completion); err != nil {
		return err
	}
	r := &completionRun{Run: text.NewRun(rq), completion: completion}
	defer r.Close()
	r.chains = make([]prefix.Chain, len(completion.Prompts))
	for i := range r.chains {
		r.chains[i] = rq.Chain(func(p wire.Prompter, m *prefix.Maker) { p.TextPrompt(rq.Body, completion, i, m) })
	}
	r.left = len(completion.Prompts) * completion.BestOf
	r.candidates = make([]*openai.TextChoice, r.left)
	if err := text.Parallel(c.Request.Context(), r.left, text.ChoicesAtOnce, r.candidate); err != nil {
		return text.Refined(withFigures(r.Run, err), completion.Refine)
	}
	if r.Stream == nil {
		total := openai.Total(r.candidates, completion.BestOf)
		more := r.more(total)
		c.WriteJSON(http.StatusOK, r.answer.Body(r.best(), total.Usage, more))
	}
	return nil
}
