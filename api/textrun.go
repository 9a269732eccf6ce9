package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// choicesAtOnce is how many choices of one request are generated at a time, if the model has as many slots. The others of
// them wait with those, so that one request can't fill the queue.
const choicesAtOnce = 4

// textRun is a request for text completions on its way: one exchange with the engine for each candidate.
type textRun struct {
	call      *call
	rq        *modelRequest
	completer wire.Completer
	ask       *request.Completion
	stream    *stream // nil for an answer in one piece

	mu         sync.Mutex
	answer     *openai.TextAnswer      // once the first exchange has begun
	instance   supervisor.Info         // that it has begun with
	candidates []*openai.TextChoice    // those that are complete; first all of the first prompt
	left       int                     // how many aren't
	lost       map[int]translate.Usage // by those that will never be, since they failed or nobody waits for them
	first      time.Duration           // from the request's arrival to the first token; 0: there is none yet
}

// hasBegun notes when the first candidate began.
func (r *textRun) hasBegun(first translate.FirstToken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == 0 {
		r.first = first.After
	}
}

// lose counts what was generated of a candidate that will never be complete.
func (r *textRun) lose(i int, u translate.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		r.lost = map[int]translate.Usage{}
	}
	r.lost[i] = u
}

// all has every candidate generated. The first error ends them all.
func (r *textRun) all() error {
	if len(r.candidates) == 1 {
		return r.one(r.call.r.Context(), 0)
	}
	ctx, cancel := context.WithCancelCause(r.call.r.Context())
	defer cancel(nil)
	var (
		workers sync.WaitGroup
		next    = make(chan int)
		fault   atomic.Pointer[panicked]
	)
	for range min(choicesAtOnce, len(r.candidates)) {
		workers.Go(func() {
			defer func() {
				if f := recover(); f != nil {
					fault.Store(asPanicked(f))
					cancel(errPanicked)
				}
			}()
			for i := range next {
				if err := r.one(ctx, i); err != nil {
					cancel(err) // only the first counts
				}
			}
		})
	}
	for i := range r.candidates {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	if f := fault.Load(); f != nil {
		f.again()
	}
	return context.Cause(ctx)
}

// one generates a candidate.
func (r *textRun) one(ctx context.Context, i int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ask := r.completer.Completion(r.rq.body, r.ask, i/r.ask.BestOf, i%r.ask.BestOf)
	return r.call.exchange(ctx, r.rq.target, r.rq.demand, ask, func(up *upstream) error {
		return r.read(ctx, up, i)
	})
}

func (r *textRun) read(ctx context.Context, up *upstream, i int) error {
	choice, err := r.begin(ctx, up, i)
	if err != nil {
		return err
	}
	sent := false
	var frames []byte
	var tally translate.Tally
	err = up.decode(r.completer.CompletionDecoder(), func(ev translate.Event) error {
		tally.Add(ev)
		if first, ok := ev.(translate.FirstToken); ok {
			r.hasBegun(first)
		}
		frames = choice.Append(frames, ev)
		if r.stream == nil {
			return r.call.gather(ev)
		}
		return nil
	}, func() {
		if len(frames) > 0 {
			sent = true
			r.stream.send(frames) // that the client has gone shows by the context
			frames = frames[:0]
		}
	})
	switch {
	case ctx.Err() != nil:
		r.lose(i, tally.Usage())
		return ctx.Err()
	case err != nil:
		if !sent {
			err = retryable(err)
		}
		if !isWasted(ctx, err) {
			r.lose(i, tally.Usage())
		}
		return err
	}
	r.complete(i, choice)
	return nil
}

// begin makes the choice that an exchange is to fill.
func (r *textRun) begin(ctx context.Context, up *upstream, i int) (*openai.TextChoice, error) {
	in := up.lease.Instance
	r.mu.Lock()
	if r.answer == nil {
		r.answer = openai.NewTextAnswer(openai.Envelope{
			ID: "cmpl-" + strings.ToLower(rand.Text()), Created: time.Now().Unix(), Model: in.ID, Fingerprint: in.Build.Version,
		})
		r.instance = in
		if r.stream != nil {
			r.stream.await()
		}
	}
	r.mu.Unlock()
	choice := &openai.TextChoice{
		Index: i, Answer: r.answer, Top: r.ask.Logprobs, Empty: r.ask.MaxTokens == 0, IsStream: r.stream != nil,
	}
	if !r.ask.Echo {
		return choice, nil
	}
	var err error
	choice.Echo, err = r.prompt(ctx, up, r.ask.Prompts[i/r.ask.BestOf])
	return choice, err
}

// prompt is the text of a prompt. Of token ids only the engine knows it.
func (r *textRun) prompt(ctx context.Context, up *upstream, raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	ask := r.completer.Detokenize(raw)
	err := r.call.converse(ctx, up.lease, r.rq.target, ask, func(up *upstream) error {
		answer, err := up.all(ctx, r.call.api.maxGathered)
		if err != nil {
			return err
		}
		var bad *translate.Error
		if text, bad = r.completer.Detokenized(answer); bad != nil {
			return bad
		}
		return r.call.gatherBytes(len(text))
	})
	return text, err
}

// complete takes a candidate, and tells a client that streams that it is complete. With the last one the stream ends.
func (r *textRun) complete(i int, choice *openai.TextChoice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.candidates[i] = choice
	r.left--
	if r.stream == nil {
		return
	}
	if r.left > 0 {
		r.stream.send(choice.AppendFinish(nil, nil))
		return
	}
	total := openai.Total(r.candidates, r.ask.BestOf)
	var end []byte
	if r.rq.includeUsage {
		end = choice.AppendFinish(nil, nil)
		end = r.answer.AppendUsage(end, total.Usage, r.more(total))
	} else {
		end = choice.AppendFinish(nil, r.more(total))
	}
	r.stream.send(r.answer.AppendDone(end))
}

// usage is what the candidates have used, complete or not. Each prompt counts once.
func (r *textRun) usage() (total translate.Usage) {
	prompt := 0
	for i, c := range r.candidates {
		u := r.lost[i]
		if c != nil {
			u = openai.Total([]*openai.TextChoice{c}, 1).Usage
		}
		if i%r.ask.BestOf == 0 {
			prompt = 0
		}
		total.Prompt += max(0, u.Prompt-prompt)
		prompt = max(prompt, u.Prompt)
		total.Completion += u.Completion
	}
	return total
}

// more is what the answer has beside the OpenAI-style fields.
func (r *textRun) more(total *translate.Outcome) []byte {
	extra := r.call.extra(r.instance, r.rq.demand.Draft)
	if extra == nil {
		return nil
	}
	return extra(total)
}

// choices are the likeliest of each prompt's candidates.
func (r *textRun) choices() []*openai.TextChoice {
	if r.ask.BestOf == r.ask.N {
		return r.candidates
	}
	var best []*openai.TextChoice
	for candidates := range slices.Chunk(r.candidates, r.ask.BestOf) {
		slices.SortStableFunc(candidates, func(a, b *openai.TextChoice) int {
			switch likelier := a.Likelihood() - b.Likelihood(); {
			case likelier > 0:
				return -1
			case likelier < 0:
				return 1
			default:
				return 0
			}
		})
		best = append(best, candidates[:r.ask.N]...)
	}
	return best
}
