package fakemlx

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// errCut closes the connection in the middle of the answer, without a traceback.
var errCut = errors.New("the connection is to be cut")

// errAnswered ends a request that is refused, and answered.
var errAnswered = errors.New("the request is refused")

// generation is a generating request. Its connection's goroutine waits while the thread, or a goroutine of the batch, has it.
type generation struct {
	*connection
	n     int // the request's number
	ask   *ask
	rule  fakekit.Rule
	alone bool // served alone, one token after the other
	done  chan error

	id             string
	prompt         []string
	tokens, cached int
	sent           int // tokens generated
	text, thought  strings.Builder
	calls          []fakekit.ToolCall
}

// generate answers a generating request: it is handed to the thread, and what ends it comes back.
func (c *connection) generate(chat bool, raw string, body map[string]any) error {
	ask, err := c.args.parseAsk(chat, body)
	if err != nil {
		c.tell(raw, 0)
		return err
	}
	ask.lone = hasLoneSurrogate(raw)
	g := &generation{connection: c, ask: ask, done: make(chan error, 1), id: "chatcmpl-" + newID()}
	if !chat {
		g.id = "cmpl-" + newID()
	}
	s := c.script()
	g.alone = ask.seeded || s.NoBatch || c.args.draft != ""
	if g.trial() {
		g.rule = lend(&c.uses, s.Rules, c.path, raw)
	} else {
		g.n = c.number()
		g.rule = c.uses.Generating(s.Rules, c.path, raw, g.n)
	}
	c.tell(raw, g.n)
	fakekit.MakeNoise(s.Noise, fakekit.AtRequest)
	c.thread.queue <- g
	return <-g.done
}

// trial reports whether the request is for one token, which is no client's.
func (g *generation) trial() bool { return g.ask.limit == 1 }

// lend is the rule for a request for one token: one for requests that contain something, or else the counts of the first that is for any.
func lend(uses *fakekit.Uses, rules []fakekit.Rule, path, raw string) fakekit.Rule {
	var special []fakekit.Rule
	for _, r := range rules {
		if r.Contains != "" {
			special = append(special, r)
		}
	}
	for _, r := range special {
		if strings.Contains(raw, r.Contains) {
			return uses.Generating(special, path, raw, 0)
		}
	}
	for _, r := range rules {
		if r.Contains == "" && r.Nth == 0 && r.Path == "" {
			return fakekit.Rule{PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens}
		}
	}
	return fakekit.Rule{}
}

func (v *server) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count++
	return v.count
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// run answers the request. It is called by the thread, or by the batch.
func (g *generation) run() error {
	g.Tell(fakekit.Event{Kind: fakekit.Serving, N: g.n})
	if g.rule.Status != 0 {
		return g.send(g.rule.Status, g.rule.Body)
	}
	var err error
	if g.prompt, err = g.ask.tokens(); err != nil {
		return g.refuse(err)
	}
	if err := g.early(); err != nil {
		return err
	}
	s := g.script()
	if g.thread.backend != nil && !g.scripted() {
		return g.relay(g.thread.backend)
	}
	if g.tokens = g.rule.PromptTokens; g.tokens == 0 {
		g.tokens = len(g.prompt)
	}
	whole := false
	if g.cached = g.rule.CachedTokens; g.cached == 0 && g.rule.PromptTokens == 0 {
		g.cached, whole = g.thread.cache.find(g.prompt)
	}
	g.cached = max(0, min(g.cached, g.tokens-1))
	if err := g.begin(); err != nil {
		return err
	}
	if whole {
		return g.fails(errWhole)
	}
	if err := g.readPrompt(); err != nil {
		return err
	}
	if err := g.atLast(); err != nil {
		return err
	}
	p := newPlan(g.ask, &g.rule, s)
	if err := g.speak(&p); err != nil {
		return err
	}
	said := append(g.prompt, p.words()...)
	if p.finish != "length" {
		g.sent++ // the token that ends it
		said = append(said, "<|im_end|>")
	}
	g.thread.cache.keep(said)
	return g.finish(p.finish)
}

// scripted reports whether a rule has an answer for this request, though there is a backend.
func (g *generation) scripted() bool {
	a := &g.rule.Answer
	return a.Text != "" || a.Reasoning != "" || a.Chunks > 0 || len(a.Pieces) > 0 || len(a.Calls) > 0 || len(g.rule.AfterTools) > 0
}

// refuse answers with 404, as whatever fails before the answer has begun.
func (g *generation) refuse(err error) error {
	text := err.Error()
	if e := (*exception)(nil); errors.As(err, &e) && e.class == "KeyError" && !strings.HasPrefix(text, "'") {
		text = "'" + text + "'"
	}
	g.Tell(fakekit.Event{Kind: fakekit.Finished, N: g.n, Code: http.StatusNotFound, Reason: text})
	g.rule.Status = http.StatusNotFound // for end
	return g.send(http.StatusNotFound, dumps(record{{"error", text}}))
}

// end records how a request ended, and lets its connection go on to its end.
func (g *generation) end(err error) {
	var e *exception
	switch {
	case errors.As(err, &e) || errors.Is(err, errCut):
		g.Tell(fakekit.Event{Kind: fakekit.Finished, N: g.n, Code: http.StatusOK, Reason: err.Error()})
	case err != nil && !errors.Is(err, errAnswered):
		g.Tell(fakekit.Event{Kind: fakekit.Cancelled, N: g.n})
	case g.rule.Status == 0:
		g.Tell(fakekit.Event{Kind: fakekit.Finished, N: g.n, Code: http.StatusOK})
	}
	if errors.Is(err, errCut) || errors.Is(err, errAnswered) {
		err = nil
	}
	g.done <- err
}

// begin writes what the real server writes before it works on the prompt.
func (g *generation) begin() error {
	n := g.thread.cache.len()
	logf("INFO", "Prompt Cache: %d sequences, 0.00 GB", n)
	logf("INFO", "- assistant: %d sequences, 0.00 GB", n)
	logf("INFO", "- user: 0 sequences, 0.00 GB")
	logf("INFO", "- system: 0 sequences, 0.00 GB")
	if !g.ask.stream {
		g.logAccess(http.StatusOK)
		return g.afterHead()
	}
	head := g.head(http.StatusOK, append([]string{"Content-type: text/event-stream", "Cache-Control: no-cache"}, cors...)...)
	if err := g.write(string(head) + "\r\n"); err != nil {
		return err
	}
	return g.afterHead()
}

// readPrompt simulates the processing of the prompt, in steps.
func (g *generation) readPrompt() error {
	total := g.tokens - g.cached
	steps := progressSteps(total, g.args.prefill)
	if g.alone {
		steps = append([]int{0}, steps...)
	}
	for i, at := range steps {
		if i == len(steps)-1 {
			if err := g.late(); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := g.wait("", g.rule.PromptDelay, false); err != nil {
				return err
			}
		}
		if g.args.draft == "" {
			if err := g.progress(at, total); err != nil {
				return err
			}
		}
		if i == 0 {
			if err := g.wait(g.rule.Gate, g.rule.FirstDelay, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// progressSteps are the places in a prompt at which its progress is told: after each step, before the last token and after it.
func progressSteps(total, step int) []int {
	var all []int
	for at := step; at < total-1; at += step {
		all = append(all, at)
	}
	if total > 1 {
		all = append(all, total-1)
	}
	return append(all, total)
}

func (g *generation) progress(processed, total int) error {
	logf("INFO", "Prompt processing progress: %d/%d", processed, total)
	if !g.ask.stream {
		return nil
	}
	return g.write(fmt.Sprintf(": keepalive %d/%d\n\n", processed, total))
}

// speak generates the tokens, and runs the script's cues between them.
func (g *generation) speak(p *plan) error {
	for i := range p.tokens {
		if err := g.cues(i); err != nil {
			return err
		}
		if i > 0 {
			if err := g.wait("", g.rule.Delay, false); err != nil {
				return err
			}
		}
		if err := g.token(&p.tokens[i]); err != nil {
			return err
		}
	}
	return g.cues(len(p.tokens))
}

// cues runs the script's cues for the current number of tokens.
func (g *generation) cues(after int) error {
	for i := range g.rule.Cues {
		c := &g.rule.Cues[i]
		if c.After != after {
			continue
		}
		if err := g.wait(c.Gate, c.Delay, c.Busy); err != nil {
			return err
		}
		if err := g.act(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generation) act(c *fakekit.Cue) error {
	switch c.Do {
	case fakekit.Crash:
		d := fakekit.Death{Signal: fakekit.Abort}
		if c.Death != nil {
			d = *c.Death
		}
		g.die(d, "crash")
	case fakekit.Hang:
		g.Tell(fakekit.Event{Kind: fakekit.Hung, N: g.n})
		g.pass(c.Busy, nil, func() bool { return false })
	case fakekit.Stick:
		g.stall(g.n)
		select {}
	case fakekit.Cut:
		return errCut
	case fakekit.Garbage:
		rubbish := string(c.Bytes)
		if c.Bytes == nil {
			rubbish = "\x00\xff\xfe{no JSON]\n\n"
		}
		return g.write(rubbish)
	case fakekit.Fault:
		return g.fails(parseException(c.Message, "RuntimeError: [metal::malloc] Resource limit (499000) exceeded."))
	}
	return nil
}

// wait waits for a gate, then for a time. That the client has gone isn't noticed meanwhile.
func (g *generation) wait(gate string, d time.Duration, busy bool) error {
	if gate != "" {
		g.Tell(fakekit.Event{Kind: fakekit.Gated, N: g.n, Gate: gate})
		g.pass(busy, nil, func() bool { return g.IsOpen(gate) })
	}
	if d > 0 {
		g.pass(busy, time.After(d), func() bool { return false })
	}
	return nil
}

// write writes to the client. Nothing is written any more by a thread that is dead.
func (g *generation) write(text string) error {
	select {
	case <-g.dead:
		select {}
	default:
	}
	_, err := g.Write([]byte(text))
	return err
}

// token generates a token.
func (g *generation) token(t *token) error {
	g.sent++
	if t.call != nil {
		g.calls = append(g.calls, *t.call)
	}
	g.text.WriteString(t.text)
	g.thought.WriteString(t.thought)
	if !g.ask.stream || t.text == "" && t.thought == "" && t.call == nil {
		return nil // a part of a call isn't sent
	}
	if err := g.chunk(nil, t); err != nil {
		return err
	}
	return nil
}
