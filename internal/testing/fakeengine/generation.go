package fakeengine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// Errors that end a generation without an answer.
var (
	errGone = errors.New("the client is gone")
	errCut  = errors.New("the connection is to be cut")
)

// generation is a generating request in progress. It belongs to its connection's goroutine.
type generation struct {
	*server
	w    http.ResponseWriter
	ctx  context.Context
	kind kind
	n    int // the request's number
	rule Rule
	ask  ask
	plan plan
	held []int // slots

	id, fingerprint string
	created         int64
	prompt, cached  int // tokens
	sent            int // tokens generated
	begin, first    time.Time
	written         time.Time // when something was last streamed
	streaming       bool      // the headers are sent
	misled          bool      // by a wrong state of its slot
}

// generate answers a generating request, and records how it ended.
func (v *server) generate(w http.ResponseWriter, r *http.Request, k kind, body string, n int) {
	s := v.script()
	g := &generation{
		server: v, w: w, ctx: r.Context(), kind: k, n: n,
		id: "chatcmpl-" + randomID(), fingerprint: s.fingerprint(), created: time.Now().Unix(),
	}
	g.rule = v.uses.Generating(s.Rules, r.URL.Path, body, n)
	fakekit.MakeNoise(s.Noise, AtRequest)
	err := g.run(body)
	end := Event{Kind: Finished, N: n, Code: http.StatusOK}
	var refused *apiError
	switch {
	case errors.Is(err, errGone):
		end = Event{Kind: Cancelled, N: n}
	case errors.Is(err, errCut):
		end.Reason = err.Error()
	case errors.As(err, &refused) && g.streaming:
		end.Reason = refused.Message
		_ = g.write(frame(refused.frame()))
	case errors.As(err, &refused):
		end.Code, end.Reason = refused.Code, refused.Message
		refused.write(w)
	case g.rule.Status != 0:
		end.Code, end.Reason = g.rule.Status, "scripted"
	}
	if g.held != nil {
		logf('I', "slot      release: id %2d | task %d | stop processing: n_tokens = %d, truncated = 0", g.held[0], n, g.prompt+g.sent)
	}
	v.Tell(end)
	v.slots.release(g.held)
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler) // net/http's way to close a connection in the middle of an answer
	}
}

// run handles the request from the checks to the last byte.
func (g *generation) run(body string) (err error) {
	if g.rule.Status != 0 {
		refuse(g.w, g.rule.Status, g.rule.Body)
		return nil
	}
	if g.ask, err = g.parseAsk(g.kind, body); err != nil {
		return err
	}
	if g.args.model == "" {
		return invalid("model name is missing from the request")
	}
	if err := g.unsupported(body); err != nil {
		return err
	}
	if err := g.fitPrompt(body); err != nil {
		return err
	}
	g.fitTokens()
	g.cached = max(0, min(g.rule.CachedTokens, g.prompt-1)) // a repeated prompt's last token is evaluated again
	place := g.slots.join(g.ask.choices, g.ask.slot)
	if !place.isServed() {
		g.Tell(Event{Kind: Queued, N: g.n})
	}
	if g.held, err = g.slots.take(g.ctx, place); err != nil {
		return errGone
	}
	logf('I', "slot launch_slot_: id %2d | task %d | processing task, is_child = 0", g.held[0], g.n)
	g.Tell(Event{Kind: Serving, N: g.n, Slot: g.held[0]})
	g.begin = time.Now()
	g.tell(0, 0)
	g.reuse()
	if err := g.readPrompt(); err != nil {
		return err
	}
	g.keepPrompt()
	defer g.keepAnswer()
	switch g.kind {
	case embedding:
		return g.embed(body)
	case ranking:
		return g.rank(body)
	}
	if g.misled {
		g.rule.Answer, g.rule.AfterTools = Answer{Text: nonsense}, nil
	}
	g.plan = newPlan(g.kind, &g.ask, &g.rule)
	if err := g.speak(); err != nil {
		return err
	}
	return g.finish()
}

// fitPrompt counts the prompt, and refuses one that is too long.
func (g *generation) fitPrompt(body string) error {
	if g.prompt = g.rule.PromptTokens; g.prompt == 0 {
		g.prompt = g.ask.tokens
	}
	if g.kind == embedding {
		if err := g.fitsBatch(body); err != nil {
			return err
		}
	}
	if g.prompt > g.context {
		message := fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", g.prompt, g.context)
		return &apiError{
			Code: http.StatusBadRequest, Message: message, Type: "exceed_context_size_error", PromptTokens: g.prompt, Context: g.context,
		}
	}
	return nil
}

// readPrompt simulates the processing of the prompt in batches.
func (g *generation) readPrompt() error {
	if err := g.progress(g.cached); err != nil {
		return err
	}
	if err := g.wait(g.rule.Gate, g.rule.FirstDelay); err != nil {
		return err
	}
	for at := g.cached; (g.ask.progress || g.rule.PromptDelay > 0) && at < g.prompt; {
		from := at
		at = min(at+max(1, g.args.batch), g.prompt)
		g.tell(at, from)
		if err := g.wait("", g.rule.PromptDelay); err != nil {
			return err
		}
		if err := g.progress(at); err != nil {
			return err
		}
	}
	return nil
}

// speak generates the tokens, and runs the script's cues between them.
func (g *generation) speak() error {
	for i := range g.plan.pieces {
		if err := g.cues(i); err != nil {
			return err
		}
		if i > 0 {
			if err := g.wait("", g.rule.Delay); err != nil {
				return err
			}
		}
		if err := g.token(i); err != nil {
			return err
		}
		g.sent++
		g.tell(g.prompt, g.prompt)
	}
	return g.cues(len(g.plan.pieces))
}

// cues runs the script's cues for the current number of tokens.
func (g *generation) cues(after int) error {
	for i := range g.rule.Cues {
		c := &g.rule.Cues[i]
		if c.After != after {
			continue
		}
		if err := g.wait(c.Gate, c.Delay); err != nil {
			return err
		}
		if err := g.act(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generation) act(c *Cue) error {
	switch c.Do {
	case Crash:
		d := Death{Signal: fakekit.Abort}
		if c.Death != nil {
			d = *c.Death
		}
		g.die(d, "crash")
	case Hang:
		g.Tell(Event{Kind: Hung, N: g.n})
		return g.hold("", nil)
	case Stick:
		g.stickOnce.Do(func() { close(g.stuck) })
		g.Tell(Event{Kind: Stuck, N: g.n})
		return g.check()
	case Cut:
		return errCut
	case Garbage:
		rubbish := c.Bytes
		if rubbish == nil {
			rubbish = []byte("\x00\xff\xfe{no JSON]\n\n")
		}
		return g.write(rubbish)
	case Fault:
		e := &apiError{Code: c.Status, Message: c.Message}
		if e.Code == 0 {
			e.Code = http.StatusInternalServerError
		}
		if e.Message == "" {
			e.Message = "Context size has been exceeded."
		}
		e.Type = errorType(e.Code)
		return e
	}
	return nil
}

// wait waits for a gate, then for a time. It returns at once if the client disconnects.
func (g *generation) wait(gate string, d time.Duration) error {
	if gate != "" {
		g.Tell(Event{Kind: Gated, N: g.n, Gate: gate})
		if err := g.hold(gate, nil); err != nil {
			return err
		}
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return g.hold("", timer.C)
}

// hold waits until the gate is open or the timer fires, or forever if there is neither.
func (g *generation) hold(gate string, timer <-chan time.Time) error {
	tick := time.NewTicker(fakekit.PollEvery)
	defer tick.Stop()
	for {
		g.stick()
		if gate != "" && g.IsOpen(gate) {
			return nil
		}
		if err := g.ping(); err != nil {
			return err
		}
		select {
		case <-g.ctx.Done():
			return errGone
		case <-g.stopping:
			return g.frozen()
		case <-timer:
			return nil
		case <-tick.C:
		}
	}
}

// stick never returns once the loop is stuck. The slot stays taken, whether or not the client is there.
func (g *generation) stick() {
	select {
	case <-g.stuck:
		select {}
	default:
	}
}

// tell records the request's progress, for GET /slots.
func (g *generation) tell(prompt, processed int) {
	g.slots.tell(g.held, slotState{g.n, prompt, processed, g.sent})
}

// frozen blocks a request in flight after the process was asked to stop, until its client disconnects.
func (g *generation) frozen() error {
	g.Tell(Event{Kind: Frozen, N: g.n})
	<-g.ctx.Done()
	return errGone
}
