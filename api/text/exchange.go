package text

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

const maxFault = 64 << 10 // bounds how much of an engine's error is read

// Response is an engine's response of status 200, whose body is still to be read, on the slots that the engine was asked on.
type Response struct {
	io.Reader

	request *Request
	Lease   *supervisor.Lease
	Engine  wire.Engine        // of the instance that answers
	body    supervisor.Payload // of the request
	contextLimit
}

// OnLease does something on a lease of as many slots as can be had, up to a number. See [Request.withRetries] for when it is done
// again; a failure then has to be marked as [retryable].
func (rq *Request) OnLease(
	ctx context.Context, demand node.Demand, slots int, bodies func() [][]byte, do func(*supervisor.Lease) error,
) error {
	return rq.withRetries(ctx, demand, bodies, func(demand node.Demand) error {
		demand.Slots = max(demand.Slots, slots)
		begun := time.Now()
		lease, err := rq.Call.Node.Loads.Acquire(ctx, rq.Target, demand)
		rq.Call.Ledger.Leased(rq.Call.Request.Context(), begun, lease)
		if err != nil {
			return &endpoint.NotLeased{Key: rq.Target.Model.Key, Err: err}
		}
		if rq.keepAlive != nil {
			rq.keepAlive.Leased(lease)
		}
		defer lease.Release()
		rq.Call.Client.Hold(lease)
		defer rq.Call.Client.Unhold(lease)
		return rq.afterLoss(lease, do(lease))
	})
}

// Post sends one request on a lease, bounded where an engine doesn't keep to its context, and has the response read.
func (rq *Request) Post(ctx context.Context, lease *supervisor.Lease, request wire.Upstream, read func(*Response) error) error {
	engine := rq.Call.Node.Engines.WireOf(&lease.Instance)
	request, bound, err := rq.withinContext(ctx, lease, engine, request)
	if err != nil {
		return err
	}
	if adapter := rq.Target.Adapter; adapter != nil {
		if request, err = adapted(lease, engine, request, adapter.Key); err != nil {
			return err
		}
	}
	payload := supervisor.Payload{Pieces: request.Body, Memory: rq.Call.Held.Memory()}
	if pinner, ok := engine.(wire.Pinner); ok && pinner.Generates(request.Path) {
		payload = lease.Pinned(payload, pinner.Pin)
	}
	inspected := rq.Call.Inspected.Upstream(lease.Instance.ID, request.Path, request.Body)
	defer inspected.End()
	resp, err := lease.PostPieces(ctx, request.Path, payload)
	if err != nil {
		if rq.Call.Request.Context().Err() != nil {
			rq.answered.Store(true) // the engine was working when the client disconnected
		}
		return rq.unanswered(ctx, lease, err)
	}
	defer resp.Body.Close()
	if inspected != nil {
		inspected.SetStatus(resp.StatusCode)
		resp.Body = &inspectedReader{resp.Body, inspected}
	}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault))
		fault := engine.Fault(resp.StatusCode, said)
		if fault.Code == "invalid_image" && wire.HasOnlyAudio(request.Body) { // engines don't say which it was
			fault.Code = "invalid_audio"
		}
		switch {
		case fault.Kind == translate.KindContextOverflow:
			return &promptTooLong{clientError{fault}, lease.Instance}
		case lease.Remote() != nil:
			return rq.refusedByRemote(lease, resp, fault, strings.HasSuffix(request.Path, "/chat/completions"))
		}
		return fault
	}
	rq.answered.Store(true)
	if err := read(&Response{resp.Body, rq, lease, engine, payload, bound}); err != nil {
		return err
	}
	lease.Answered()
	if on := lease.Remote(); on != nil && !on.Loaded {
		rq.Call.Node.Remotes.Recheck(on.Name) // it has just loaded the model
	}
	return nil
}

func adapted(lease *supervisor.Lease, engine wire.Engine, request wire.Upstream, key string) (wire.Upstream, error) {
	pinner, pins := engine.(wire.Pinner)
	adapter, adapts := engine.(wire.Adapter)
	number := lease.Instance.Spec.AdapterNumber(key)
	switch {
	case !pins || !adapts || !lease.Instance.Build.Adapts || number < 0:
		return request, translate.Invalid("unsupported_model", "model", "The engine of the model "+lease.Instance.Spec.Model.Key+
			" can't apply adapters for single requests: get a newer one.")
	case pinner.Generates(request.Path):
		request.Body = adapter.Adapt(request.Body, number)
	}
	return request, nil
}

// PostWhole is Post for a response that is read to its end. One that is too long to be gathered is an error.
func (rq *Request) PostWhole(ctx context.Context, lease *supervisor.Lease, u wire.Upstream, take func(said []byte) error) error {
	return rq.Post(ctx, lease, u, func(resp *Response) error {
		said, err := io.ReadAll(io.LimitReader(resp, rq.Call.Site.MaxGathered+1))
		switch {
		case err != nil:
			return rq.unanswered(ctx, lease, err)
		case int64(len(said)) > rq.Call.Site.MaxGathered:
			return AnswerTooLarge()
		}
		return take(said)
	})
}

func (rq *Request) log(lease *supervisor.Lease) *slog.Logger {
	return rq.Call.Site.Log.With("request", rq.Call.ID, "instance", lease.Instance.ID)
}

func (rq *Request) unanswered(ctx context.Context, lease *supervisor.Lease, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if openfiles.AreExhausted(err) {
		return endpoint.NoFiles(rq.Call, err) // the engine wasn't even asked
	}
	rq.log(lease).Warn("a request was not answered", "error", err)
	lost := &engineLost{again: true, cause: err}
	if lease.Remote() != nil {
		lost.clientErr = brokenRemote(lease)
	} else {
		message := "The engine of " + lease.Instance.ID + " ended before it answered. Its log says more."
		lost.clientErr = &translate.Error{Kind: translate.KindEngineFailed, Message: message}
	}
	return lost
}

type inspectedReader struct {
	io.ReadCloser
	in *record.UpstreamInspection
}

func (r *inspectedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.in.AddAnswer(p[:n])
	return n, err
}

func (rq *Request) gather(ev translate.Event) error {
	n := 0
	switch ev := ev.(type) {
	case translate.Text:
		n = len(ev.Text)
	case translate.Reasoning:
		n = len(ev.Text)
	case translate.CallStart:
		n = len(ev.ID) + len(ev.Name)
	case translate.CallArgs:
		n = len(ev.Text)
	case translate.CallResult:
		n = len(ev.Output)
	case translate.Logprobs:
		n = len(ev.Content)
	}
	return rq.GatherBytes(n)
}

// GatherBytes counts bytes of an answer that is gathered. The error says that they are too many.
func (rq *Request) GatherBytes(n int) error {
	if rq.gathered.Add(int64(n)) > rq.Call.Site.MaxGathered {
		return AnswerTooLarge()
	}
	return nil
}

// AnswerTooLarge refuses an answer that is too large to be gathered.
func AnswerTooLarge() *translate.Error {
	return translate.Invalid("answer_too_large", "", "The answer is larger than 64 MiB, which is as much as is kept for one request. "+
		"Ask for a stream, or for fewer choices (n), tokens, log probabilities, inputs or calls of tools.")
}
