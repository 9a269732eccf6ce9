package text

import (
	"context"
	"errors"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/suspects"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/translate"
)

// everySlot asks for all slots of an instance, so that no other request runs on it.
const everySlot = 1 << 20

// clientError is a failure with what the client is told of it if nothing more is tried.
type clientError struct{ clientErr *translate.Error }

func (e *clientError) Error() string { return e.clientErr.Error() }

func (e *clientError) Unwrap() error { return e.clientErr }

// engineLost is a failure that the engine caused: it ended, it hangs, or the connection broke.
type engineLost struct {
	clientError
	cause error // the connection's own error; may be nil
	again bool  // the client has seen nothing: the same request may be sent again
	loss  process.Loss
	by    *supervisor.Info // a remote's instance, which is alive; nil: it is none
}

type promptTooLong struct {
	clientError
	by supervisor.Info
}

// retryable marks the failure of an answer of which the client has seen nothing, if the engine ended. It returns others unchanged.
func retryable(err error) error {
	if e, ok := errors.AsType[*translate.Error](err); ok && e.IsBrokenOff() {
		return &engineLost{clientError: clientError{e}, again: true}
	}
	return err
}

// afterLoss finds out what became of the engine if err says that it broke off, and returns the error to report.
func (rq *Request) afterLoss(lease *supervisor.Lease, err error) error {
	broken, ok := errors.AsType[*engineLost](err)
	if !ok {
		e, isFault := errors.AsType[*translate.Error](err)
		if !isFault || !e.IsBrokenOff() {
			return err
		}
		broken = &engineLost{clientError: clientError{e}}
	}
	ctx := rq.Call.Request.Context()
	found := *broken
	found.loss = lease.Lost(ctx, broken.cause)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch found.loss.Kind {
	case process.Hung:
		found.clientErr = translate.NewError(translate.KindStalled, "", "", "The engine of "+lease.Instance.ID+
			" has stopped answering, and is being ended. Try again: the next request finds a fresh one.")
	case process.Silent:
		on := lease.Remote()
		found.clientErr = translate.NewError(translate.KindStalled, "", "", "The remote "+on.Name+" has sent nothing for "+
			on.Server.Silence().String()+", so the request was given up. "+
			"Send a shorter one, or raise stall_timeout in the block of the remote.")
	case process.Unreachable:
		found.clientErr = &translate.Error{
			Kind: translate.KindUnavailable, Code: "remote_unreachable", RetryAfter: usualRest,
			Message: "The remote " + lease.Remote().Name + " can't be reached any more, and no other place has the model " +
				lease.Instance.Spec.Model.Key + ". Send the request again later.",
		}
	case process.ShutDown:
		found.clientErr = endpoint.ShuttingDown("The server is shutting down.")
	default:
		if lease.Remote() != nil {
			found.clientErr, found.by = brokenRemote(lease), &lease.Instance
		}
	}
	rq.log(lease).Warn("an engine broke off", "engine", found.loss.Kind.String(), "error", err)
	return &found
}

// withRetries tries a request, and tries it again if the engine was lost and the client has seen nothing. A prompt that is too long
// for the instance is sent to one with a longer context, if the model has one.
//
// A request that was being processed when an engine was lost is suspected of having caused it. It is then sent to an instance where no
// other request runs. If that crashes as well, by itself, the request caused it, and is refused from then on. The other requests are
// answered by their second attempt. A remote that can't be reached any more says nothing of the request, so a few others are tried after
// it.
func (rq *Request) withRetries(ctx context.Context, demand node.Demand, body func() [][]byte, try func(node.Demand) error) error {
	key := rq.Target.Model.Key
	known := rq.Call.Node.Suspects.Of(key, body)
	var told *translate.Error // of a place that didn't answer
	for isFirst, turns := true, 0; ; {
		switch known {
		case suspects.Convicted:
			return crashesEngine()
		case suspects.Suspected:
			demand.Slots = everySlot
		}
		err := try(demand)
		if refused, ok := errors.AsType[*remoteRefusal](err); ok && turns < maxTurns && ctx.Err() == nil {
			if refused.by != nil && !rq.elsewhere(&demand, refused.by, refused.must) {
				return refused.clientErr
			}
			told = refused.clientErr // the next place, or the same one a little later
			turns++
			continue
		}
		if told != nil && isNoPlace(err) {
			return told
		}
		if long, ok := errors.AsType[*promptTooLong](err); ok && rq.Call.Node.Loads.Outgrown(rq.Target, &demand, long.by) {
			continue
		}
		broken, ok := errors.AsType[*engineLost](err)
		if !ok {
			if err == nil && known == suspects.Suspected {
				rq.Call.Node.Suspects.Acquit(key, body)
			}
			return err
		}
		loss := broken.loss
		if evidence, isSuspicious := evidenceOf[loss.Kind]; isSuspicious {
			known = rq.Call.Node.Suspects.Blame(key, body, evidence, loss.Alone)
		}
		isGone := loss.Kind == process.Unreachable && turns < maxTurns
		isCulprit := loss.Kind == process.Hung && loss.Alone || loss.Kind == process.Silent // it would only hang again
		switch {
		case broken.again && known == suspects.Convicted:
			return crashesEngine()
		case !broken.again, !isFirst && !isGone, isCulprit, loss.Kind == process.ShutDown, ctx.Err() != nil:
			return broken.clientErr
		}
		if isGone {
			turns++
			told = broken.clientErr
			continue
		}
		if isFirst = false; broken.by != nil && rq.elsewhere(&demand, broken.by, false) {
			told = broken.clientErr
		}
	}
}

// evidenceOf has the losses that make a request run alone the next time, whether it is their cause or not.
var evidenceOf = map[process.LossKind]suspects.Evidence{
	process.Ended: suspects.OfCrash, process.OutOfMemory: suspects.OfMemory,
	process.Killed: suspects.NoEvidence, process.Hung: suspects.NoEvidence,
}

func crashesEngine() *translate.Error {
	return translate.Invalid("request_crashes_engine", "", "This request made the model's engine crash twice, or run out of memory, and "+
		"is refused for an hour. Change it: other sampling parameters, schema, images or prompt. The engine's log says more.")
}
