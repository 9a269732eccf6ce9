package text

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ampleShare is the share of the context that a prompt may take, by its size in bytes, so that it needn't be counted: 1/ampleShare.
const ampleShare = 4

// promptCounts are the lengths of a request's prompts in tokens: each is counted once, for all choices and attempts.
type promptCounts struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*promptCount
}

type promptCount struct {
	mu      sync.Mutex // held while the prompt is counted
	counted bool
	promptLength
}

// promptLength is the length of a prompt in tokens; the zero value: it wasn't counted.
type promptLength struct {
	tokens  int
	cached  int  // those that the engine had from earlier requests
	isLeast bool // it has at least as many: counting was ended, since they are too many
}

type contextLimit struct {
	isFull bool // an answer that ends at the limit of the request has filled the context
	prompt promptLength
}

// usage returns the usage of a bounded request's answer. Counting the prompt was a part of the request: what the engine kept of that
// doesn't count as cached. An answer that is cut has no figures of the prompt.
func (b *contextLimit) usage(u translate.Usage) translate.Usage {
	if b.prompt.tokens > 0 {
		u.Prompt, u.Cached = b.prompt.tokens, b.prompt.cached
	}
	return u
}

// of returns the count of a prompt. The requests that count it are the same for all requests that have it.
func (p *promptCounts) of(counting wire.Upstream) *promptCount {
	hash := sha256.New()
	for _, piece := range counting.Body {
		_, _ = hash.Write(piece)
	}
	key := [sha256.Size]byte(hash.Sum(nil))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[[sha256.Size]byte]*promptCount{}
	}
	if p.all[key] == nil {
		p.all[key] = &promptCount{}
	}
	return p.all[key]
}

// withinContext returns a request with a limit of tokens with which its answer stays within the context of its instance. An engine that
// keeps to its context does so itself. A prompt that is too long is refused, as an engine would. It is counted only where its size doesn't
// decide.
func (rq *Request) withinContext(
	ctx context.Context, lease *supervisor.Lease, engine wire.Engine, u wire.Upstream,
) (wire.Upstream, contextLimit, error) {
	bounder, ok := engine.(wire.Bounder)
	limit := lease.Instance.Spec.ContextLength
	if !ok || u.Counts || limit <= 0 {
		return u, contextLimit{}, nil
	}
	most, own := bounder.Bounds(u)
	switch {
	case u.Cut:
	case own > 0 && most+own <= limit:
		return u, contextLimit{}, nil
	case own == 0 && most <= limit/ampleShare, own > 0 && most <= limit/ampleShare && own >= limit:
		return bounder.Limit(u, limit-most), contextLimit{isFull: true}, nil
	}
	length, err := rq.countPrompt(ctx, lease, bounder, u)
	switch {
	case err != nil:
		return u, contextLimit{}, err
	case length.isLeast:
		return u, contextLimit{}, &promptTooLong{clientError{translate.SurelyTooLong("messages", length.tokens, limit)}, lease.Instance}
	case length.tokens >= limit:
		return u, contextLimit{}, &promptTooLong{clientError{translate.Overflow(length.tokens, limit)}, lease.Instance}
	case own > 0 && length.tokens+own <= limit:
		return u, contextLimit{prompt: length}, nil
	default:
		return bounder.Limit(u, limit-length.tokens), contextLimit{true, length}, nil
	}
}

func (rq *Request) countPrompt(ctx context.Context, lease *supervisor.Lease, bounder wire.Bounder, u wire.Upstream) (promptLength, error) {
	counting := bounder.Counting(u)
	count := rq.prompts.of(counting)
	count.mu.Lock()
	defer count.mu.Unlock()
	limit := lease.Instance.Spec.ContextLength
	if count.counted && (!count.isLeast || count.tokens >= limit) {
		return count.promptLength, nil
	}
	counter := &promptCounter{limit: limit}
	err := rq.Post(ctx, lease, counting, func(resp *Response) error {
		if rq.Counting != nil {
			counter.progress = func(ev translate.Prompt) { rq.Counting(resp, ev) }
		}
		return counter.read(ctx, resp, resp.Engine.Decoder())
	})
	if err != nil {
		return promptLength{}, err
	}
	count.counted, count.promptLength = true, counter.length
	return count.promptLength, nil
}

// promptCounter finds the length of a prompt in the answer to a request that counts it.
type promptCounter struct {
	limit  int // of the context, in tokens; 0 if unknown
	tally  translate.Tally
	length promptLength

	progress func(translate.Prompt) // may be nil
}

var errCounted = errors.New("the prompt is counted")

// read reads the answer until the prompt is counted, or known to be longer than the context: the engine would compute all of it.
func (p *promptCounter) read(ctx context.Context, resp *Response, decoder translate.Decoder) error {
	buf := endpoint.Buffers.Get().(*[]byte)
	defer endpoint.Buffers.Put(buf)
	for {
		n, err := resp.Read(*buf)
		said := decoder.Feed((*buf)[:n], p.take)
		if said == nil && err != nil {
			said = decoder.Close(p.take)
		}
		switch {
		case errors.Is(said, errCounted):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case said != nil:
			return retryable(said)
		case err != nil:
			return translate.Nonsense() // the decoder's last event ended neither
		}
	}
}

// take ends the answer at the first event that has the count, or an error.
func (p *promptCounter) take(ev translate.Event) error {
	p.tally.Add(ev)
	switch ev := ev.(type) {
	case translate.Prompt:
		if p.limit > 0 && ev.Total >= p.limit {
			p.length = promptLength{tokens: ev.Total, isLeast: true}
			return errCounted
		}
		if p.progress != nil {
			p.progress(ev)
		}
	case translate.Finish:
		usage := p.tally.Usage()
		if usage.Prompt == 0 {
			return translate.Nonsense()
		}
		p.length = promptLength{tokens: usage.Prompt, cached: usage.Cached}
		return errCounted
	case translate.Fault:
		return ev.Err
	}
	return nil
}
