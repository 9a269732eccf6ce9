package fakeengine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// encode returns JSON without a final newline, and without escaping <, > and &.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("fakeengine: encoding an answer: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// frame is a server-sent event.
func frame(data []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", data) }

// check is called before anything is sent. It returns an error if the client has disconnected, and blocks while the loop is
// stuck or the process is stopping.
func (g *generation) check() error {
	g.awaitTurn()
	g.stick()
	select {
	case <-g.ctx.Done():
		return errGone
	case <-g.stopping:
		return g.frozen()
	default:
		return nil
	}
}

// awaitTurn waits until no action on a slot is under way.
func (g *generation) awaitTurn() {
	g.loop.Lock()
	defer g.loop.Unlock()
}

// write sends bytes at once, after the headers.
func (g *generation) write(p []byte) error {
	if err := g.check(); err != nil {
		return err
	}
	if g.ask.stream && !g.streaming {
		h := g.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		h.Set("Keep-Alive", "timeout=5, max=100")
	}
	g.streaming = true
	g.written = time.Now()
	if _, err := g.w.Write(p); err != nil {
		return errGone
	}
	if err := http.NewResponseController(g.w).Flush(); err != nil {
		return errGone
	}
	return nil
}

// send streams a chunk. Without a stream it only checks that the client is connected.
func (g *generation) send(c *chunk) error {
	if !g.ask.stream {
		return g.check()
	}
	return g.write(frame(g.encode(c)))
}

// ping breaks a long silence with a comment.
func (g *generation) ping() error {
	if !g.ask.stream || !g.streaming || g.ask.ping == 0 || time.Since(g.written) < g.ask.ping {
		return nil
	}
	return g.write([]byte(":\n\n"))
}

// progress sends the progress of the prompt.
func (g *generation) progress(processed int) error {
	if !g.ask.progress {
		return nil
	}
	if g.kind == native {
		return g.nativeProgress(processed)
	}
	for index := range g.ask.choices {
		c := g.chunk(g.delta(index, roleDelta{Role: "assistant"}))
		c.Progress = &progress{Total: g.prompt, Cache: g.cached, Processed: processed, TimeMS: time.Since(g.begin).Milliseconds()}
		if err := g.send(c); err != nil {
			return err
		}
	}
	return nil
}

// token streams one token of each choice, before the first one the role.
func (g *generation) token(i int) error {
	if i == 0 {
		if err := g.role(); err != nil {
			return err
		}
	}
	if g.kind == native {
		return g.nativeToken(g.plan.pieces[i].text)
	}
	for index := range g.ask.choices {
		c := g.chunk(g.pieceDelta(index, &g.plan.pieces[i]))
		if g.ask.perToken {
			c.Timings = g.timings()
			c.Timings.PredictedN++ // with this one
		}
		if err := g.send(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generation) role() error {
	g.first = time.Now()
	if g.kind != chat {
		return nil
	}
	for index := range g.ask.choices {
		if err := g.send(g.chunk(g.delta(index, roleDelta{Role: "assistant"}))); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the chunks after the last token, or the whole answer if it isn't streamed.
func (g *generation) finish() error {
	if g.first.IsZero() {
		if err := g.role(); err != nil {
			return err
		}
	}
	if g.kind == native {
		return g.nativeFinish()
	}
	if !g.ask.stream {
		return g.finishWhole()
	}
	for index := range g.ask.choices {
		c := g.chunk(g.lastDelta(index))
		if g.kind == completion { // which tells its usage whether it was asked to or not, and here
			c.Usage, c.Timings = g.usage(), g.timings()
		}
		if !g.ask.usage {
			c.Timings = g.timings()
		}
		if g.ask.verbose {
			c.Verbose = g.verbose()
		}
		if err := g.send(c); err != nil {
			return err
		}
	}
	if g.ask.usage && g.kind == chat {
		c := g.chunk()
		c.Usage, c.Timings = g.usage(), g.timings()
		if err := g.send(c); err != nil {
			return err
		}
	}
	if g.rule.NoDone {
		return nil
	}
	return g.write(frame([]byte("[DONE]")))
}

func (g *generation) finishWhole() error {
	if err := g.check(); err != nil {
		return err
	}
	c := g.chunk()
	c.Object = map[kind]string{chat: "chat.completion", completion: "text_completion"}[g.kind]
	for index := range g.ask.choices {
		c.Choices = append(c.Choices, g.whole(index))
	}
	c.Usage, c.Timings = g.usage(), g.timings()
	if g.ask.verbose {
		c.Verbose = g.verbose()
	}
	body := g.encode(c)
	if g.streaming { // garbage went ahead
		return g.write(body)
	}
	writeBody(g.w, http.StatusOK, body)
	return nil
}
