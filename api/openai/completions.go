package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// completionRun is a request for text completions on its way: one upstream request for each candidate.
type completionRun struct {
	*text.Run

	completion *request.Completion
	chains     []prefix.Chain // of the prompts

	answer     *openai.TextAnswer   // nil: no engine has begun to answer
	candidates []*openai.TextChoice // those that are complete; first all of the first prompt
	left       int                  // the number of those that aren't complete
}

// candidate has a candidate generated, and completes it. With the last one a stream ends.
func (r *completionRun) candidate(ctx context.Context, i int) error {
	of := r.completion
	reply := &candidateReply{completionRun: r, index: i}
	p := text.Part{
		Index: i, Prompt: i / of.BestOf, IsFree: of.MaxTokens == 0, Chain: r.chains[i/of.BestOf], Reply: reply,
		Task: &text.CompletionTask{
			Model: &r.Request.Target.Model, Body: r.Request.Body, Completion: of, Prompt: i / of.BestOf, Candidate: i % of.BestOf,
		},
	}
	err := r.Generate(ctx, p)
	if err == nil {
		r.Send(func(dst []byte) []byte {
			r.candidates[i] = reply.choice
			r.left--
			return r.appendFinish(dst, reply.choice)
		})
	}
	return err
}

// appendFinish tells a client that streams that a candidate is complete.
func (r *completionRun) appendFinish(dst []byte, choice *openai.TextChoice) []byte {
	switch {
	case r.Stream == nil:
		return dst
	case r.left > 0:
		return choice.AppendFinish(dst, nil)
	}
	total := openai.Total(r.candidates, r.completion.BestOf)
	if more := r.more(total); r.Request.IncludeUsage {
		dst = r.answer.AppendUsage(choice.AppendFinish(dst, nil), total.Usage, more)
	} else {
		dst = choice.AppendFinish(dst, more)
	}
	return r.answer.AppendDone(dst)
}

type candidateReply struct {
	*completionRun

	index  int
	choice *openai.TextChoice
}

func (r *candidateReply) Begin(ctx context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	of := r.completion
	r.choice = &openai.TextChoice{
		Index: r.index, Answer: r.beginAnswer(resp), Top: of.Logprobs, Empty: of.MaxTokens == 0, IsStream: r.Stream != nil,
	}
	if of.Echo {
		var err error
		if r.choice.Echo, err = r.promptText(ctx, resp, of.Prompts[r.index/of.BestOf]); err != nil {
			return nil, err
		}
	}
	return r.ByEvents(resp, decoder, r.choice), nil
}

// beginAnswer is what the candidates have in common. It names the instance by which the first of them was begun.
func (r *completionRun) beginAnswer(resp *text.Response) *openai.TextAnswer {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.answer == nil {
		r.Instance = &resp.Lease.Instance
		r.answer = openai.NewTextAnswer(openai.Envelope{
			ID: endpoint.NewID("cmpl-"), Created: time.Now().Unix(), Model: r.Instance.ID, Fingerprint: r.Instance.Build.Version,
		})
		if r.Stream != nil {
			r.Stream.Await()
		}
	}
	return r.answer
}

// promptText is the text of a prompt. Of token ids only the engine knows it.
func (r *completionRun) promptText(ctx context.Context, resp *text.Response, prompt json.RawMessage) (said string, err error) {
	if json.Unmarshal(prompt, &said) == nil {
		return said, nil
	}
	engine, bad := text.EngineFor[wire.Detokenizer](r.Request, resp.Engine, "takes no token ids: send the prompt as text.")
	if bad != nil {
		return "", bad
	}
	err = r.Request.PostWhole(ctx, resp.Lease, engine.Detokenize(prompt), func(answer []byte) error {
		if said, bad = engine.Detokenized(answer); bad != nil {
			return bad
		}
		return r.Request.GatherBytes(len(said))
	})
	return said, err
}

func (r *completionRun) more(total *translate.Outcome) []byte {
	extra := extra(r.Call, r.Instance, r.Request.Demand.Draft)
	if extra == nil {
		return nil
	}
	return extra(total)
}

func (r *completionRun) best() []*openai.TextChoice {
	if r.completion.BestOf == r.completion.N {
		return r.candidates
	}
	var best []*openai.TextChoice
	for candidates := range slices.Chunk(r.candidates, r.completion.BestOf) {
		slices.SortStableFunc(candidates, func(a, b *openai.TextChoice) int { return cmp.Compare(b.Likelihood(), a.Likelihood()) })
		best = append(best, candidates[:r.completion.N]...)
	}
	return best
}

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
		r.chains[i] = rq.Chain(func(m *prefix.Maker) { wire.AddText(completion, i, m) })
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
