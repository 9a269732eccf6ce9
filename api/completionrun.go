package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// choicesAtOnce is how many choices of one request are generated at a time, if the model has as many slots. The others wait
// here and not in the queue, so that one request can't fill that.
const choicesAtOnce = 4

// completionRun is a request for text completions on its way: one exchange with the engine for each candidate.
type completionRun struct {
	*run

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
	p := part{
		index: i, prompt: i / of.BestOf, isFree: of.MaxTokens == 0, chain: r.chains[i/of.BestOf], reply: reply,
		asks: &textQuestion{&r.rq.target.Model, r.rq.body, of, i / of.BestOf, i % of.BestOf},
	}
	err := r.exchange(ctx, p)
	if err == nil {
		r.tell(func(dst []byte) []byte {
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
	case r.stream == nil:
		return dst
	case r.left > 0:
		return choice.AppendFinish(dst, nil)
	}
	total := openai.Total(r.candidates, r.completion.BestOf)
	if more := r.more(total); r.rq.includeUsage {
		dst = r.answer.AppendUsage(choice.AppendFinish(dst, nil), total.Usage, more)
	} else {
		dst = choice.AppendFinish(dst, more)
	}
	return r.answer.AppendDone(dst)
}

// candidateReply is one candidate.
type candidateReply struct {
	*completionRun

	index  int
	choice *openai.TextChoice
}

func (r *candidateReply) begin(ctx context.Context, resp *engineResponse, decoder *wire.Recorder) (wire.Rewriter, error) {
	of := r.completion
	r.choice = &openai.TextChoice{
		Index: r.index, Answer: r.beginAnswer(resp), Top: of.Logprobs, Empty: of.MaxTokens == 0, IsStream: r.stream != nil,
	}
	if of.Echo {
		var err error
		if r.choice.Echo, err = r.promptText(ctx, resp, of.Prompts[r.index/of.BestOf]); err != nil {
			return nil, err
		}
	}
	return r.byEvents(resp, decoder, r.choice), nil
}

func (r *candidateReply) isSeen(sent bool) bool { return sent }

// beginAnswer is what the candidates have in common. It names the instance by which the first of them was begun.
func (r *completionRun) beginAnswer(resp *engineResponse) *openai.TextAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer == nil {
		r.instance = &resp.lease.Instance
		r.answer = openai.NewTextAnswer(openai.Envelope{
			ID: endpoint.NewID("cmpl-"), Created: time.Now().Unix(), Model: r.instance.ID, Fingerprint: r.instance.Build.Version,
		})
		if r.stream != nil {
			r.stream.Await()
		}
	}
	return r.answer
}

// promptText is the text of a prompt. Of token ids only the engine knows it.
func (r *completionRun) promptText(ctx context.Context, resp *engineResponse, prompt json.RawMessage) (said string, err error) {
	if json.Unmarshal(prompt, &said) == nil {
		return said, nil
	}
	tokens, ok := resp.engine.(wire.Detokenizer)
	if !ok {
		return "", wrongEngine(r.rq.target.Model, "takes no token ids: send the prompt as text.")
	}
	err = r.rq.converse(ctx, resp.lease, tokens.Detokenize(prompt), func(resp *engineResponse) error {
		answer, err := resp.all(ctx, r.call.Site.MaxGathered)
		if err != nil {
			return err
		}
		var bad *translate.Error
		if said, bad = tokens.Detokenized(answer); bad != nil {
			return bad
		}
		return r.rq.gatherBytes(len(said))
	})
	return said, err
}

// more is what the answer has beside the OpenAI-style fields.
func (r *completionRun) more(total *translate.Outcome) []byte {
	extra := extra(r.call, r.instance, r.rq.demand.Draft)
	if extra == nil {
		return nil
	}
	return extra(total)
}

// best are the likeliest of each prompt's candidates.
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
