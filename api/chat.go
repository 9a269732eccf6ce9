package api

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// chatPath is where the engines answer chat requests.
const chatPath = "/v1/chat/completions"

// maxFault bounds how much of an engine's error is read.
const maxFault = 64 << 10

// chatCompletions is POST /v1/chat/completions.
func (c *call) chatCompletions() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, err := model(body)
	if err != nil {
		return err
	}
	stream, includeUsage, bad := streamOptions(body)
	if bad != nil {
		return bad
	}
	ctx := c.r.Context()
	target, err := c.node.Find(ctx, name)
	if err != nil {
		return err
	}
	wire := c.node.Wire(target.Model)
	upstream, bad := wire.Chat(body, c.node.Caps(target.Model))
	if bad != nil {
		return bad
	}
	lease, resp, err := c.ask(ctx, chatPath, target, node.Use{}, upstream)
	if err != nil {
		return err
	}
	defer lease.Release()
	defer resp.Body.Close()
	reasoning := c.node.Settings().ReasoningField
	if stream {
		c.relay(resp.Body, wire.Rewriter(translate.RewriteOptions{IncludeUsage: includeUsage, ReasoningField: reasoning}))
		return nil
	}
	return c.gather(resp.Body, wire.Decoder(), &translate.ChatBody{
		ID:          "chatcmpl-" + strings.ToLower(rand.Text()),
		Created:     time.Now().Unix(),
		Model:       lease.Instance.ID,
		Fingerprint: lease.Instance.Build.Version,
		Reasoning:   reasoning,
	})
}

func streamOptions(body *translate.Body) (stream, includeUsage bool, _ *translate.Error) {
	stream, bad := body.Bool("stream")
	if bad != nil {
		return false, false, bad
	}
	return stream, body.Get("stream_options").Get("include_usage").Bool(), nil
}

// ask acquires a slot and sends the engine its body. The answer's status is 200; the caller has to close it and to release
// the lease. An engine that dies before it answers is replaced, once: the client has been sent nothing yet.
func (c *call) ask(ctx context.Context, path string, target node.Target, use node.Use, body []byte) (*supervisor.Lease, *http.Response, error) {
	for isRetry := false; ; isRetry = true {
		lease, err := c.node.Acquire(ctx, target, use)
		if err != nil {
			return nil, nil, err
		}
		resp, err := lease.Post(ctx, path, body)
		if err == nil && resp.StatusCode == http.StatusOK {
			return lease, resp, nil
		}
		if err == nil {
			said, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault))
			resp.Body.Close()
			lease.Release()
			return nil, nil, c.node.Wire(target.Model).Fault(resp.StatusCode, said)
		}
		hasDied := lease.Died(ctx)
		lease.Release()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		c.api.Log.Warn("an engine did not answer", "request", c.id, "instance", lease.Instance.ID, "has_died", hasDied, "error", err)
		if isRetry || !hasDied {
			return nil, nil, &translate.Error{
				Kind:    translate.KindEngineFailed,
				Message: "The engine of " + lease.Instance.ID + " ended before it answered. Its log says more.",
			}
		}
	}
}

// buffers are what streams are copied through.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// relay passes a stream on: one write and one flush for each read.
func (c *call) relay(from io.Reader, rewriter translate.Rewriter) {
	in, out := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer buffers.Put(in)
	defer buffers.Put(out)
	stream := c.beginStream()
	for {
		n, err := from.Read(*in)
		if n > 0 && !stream.send(rewriter.Append((*out)[:0], (*in)[:n])) {
			return
		}
		if err != nil {
			break
		}
	}
	if c.r.Context().Err() != nil {
		return
	}
	stream.send(rewriter.Close((*out)[:0]))
	if fault := rewriter.Fault(); fault != nil {
		c.api.Log.Warn("a stream failed", "request", c.id, "error", fault)
	}
}

// stream is an answer of server-sent events.
type stream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
}

// beginStream sends the header, so that the client knows at once that its request is being answered.
func (c *call) beginStream() stream {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform") // no-transform: compression would hold chunks back
	h.Set("X-Accel-Buffering", "no")
	c.begun = true
	c.w.WriteHeader(http.StatusOK)
	s := stream{c.w, http.NewResponseController(c.w)}
	_ = s.flush.Flush() // what is wrong with the connection shows with the first chunk
	return s
}

// send writes events and flushes. It is false when the client has gone.
func (s stream) send(events []byte) bool {
	if len(events) == 0 {
		return true
	}
	if _, err := s.w.Write(events); err != nil {
		return false
	}
	return s.flush.Flush() == nil
}

// gather reads a stream to its end and answers with a body in one piece.
func (c *call) gather(from io.Reader, decoder translate.Decoder, encoder translate.Encoder) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var body []byte
	emit := func(ev translate.Event) error {
		if fault, ok := ev.(translate.Fault); ok {
			return fault.Err
		}
		body = encoder.Append(body, ev)
		return nil
	}
	for {
		n, err := from.Read(*buf)
		if fault := decoder.Feed((*buf)[:n], emit); fault != nil {
			return fault
		}
		if err != nil {
			break // whether or not it is the end: the decoder knows if anything is missing
		}
	}
	if err := c.r.Context().Err(); err != nil {
		return err
	}
	if err := decoder.Close(emit); err != nil {
		return err
	}
	c.writeJSON(http.StatusOK, body)
	return nil
}
