package text

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// repeatable is how long an answer may have taken that an engine is asked to repeat, to be surely the same, rather than to continue.
const repeatable = 10 * time.Second

// relay brings a part's answer from engines to the client. If an engine is lost, the answer of another takes its place in the client's
// stream. What happens is decided by its state: see [wire.State], and [wire.ResumeMode] for how the next engine answers.
type relay struct {
	Part

	engine   wire.Engine       // that is asked
	source   string            // whose engine that is, as [sourceOf]
	template *request.Template // what was known of the model's there
	upstream wire.Upstream     // its request
	next     wire.Upstream     // what it is asked next, which may go on with the answer

	state    wire.State
	mode     wire.ResumeMode
	rewriter wire.Rewriter  // nil: no engine has begun to answer
	recorder *wire.Recorder // what the rewriter reads from; nil: it reads the engine's stream itself

	sent   bool // something of it
	isSeen bool // so that it can't be begun again

	from, to time.Time // when the first and the last piece were sent
}

// newRelay begins with the engine that the model has here. Another may be leased.
func (r *Run) newRelay(p Part) (*relay, error) {
	t := &relay{Part: p, template: r.Request.Caps.Template}
	if r.Request.Target.Model.IsRemote {
		t.source = anySource
	}
	if bad := t.useEngine(r.Request.Engine); bad != nil {
		return nil, bad
	}
	t.next = t.upstream
	return t, nil
}

func (t *relay) useEngine(engine wire.Engine) *translate.Error {
	asked, bad := t.Task.upstream(engine)
	if bad == nil {
		t.engine, t.upstream = engine, asked
	}
	return bad
}

const anySource = "?" // the place of a model of which it isn't known yet which remote answers

// useInstance has the engine of an instance asked. The model's template may have become known only when the instance was loaded.
func (r *Run) useInstance(t *relay, in *supervisor.Info) error {
	place, template := "", r.Call.Node.Engines.Template(in) // empty: this machine
	if on := in.Spec.Remote; on != nil {
		place = on.Name + " " + on.Model
	}
	if place == t.source && template == t.template {
		return nil
	}
	if bad := t.useEngine(r.Call.Node.Engines.WireOf(in)); bad != nil {
		return bad
	}
	t.source, t.template = place, template
	if !t.plan(true) {
		return notContinued()
	}
	return nil
}

// resumer is a reply whose rewriter may read the engine's stream itself. Resume goes on with the events of another engine.
type resumer interface {
	Resume(resp *Response, recorder *wire.Recorder) wire.Rewriter
}

// recorded is a rewriter that reads an engine's stream itself and knows what the answer has said.
type recorded interface{ Said() wire.Said }

// said is what the client's answer has said; ok is false if that isn't known.
func (t *relay) said() (said wire.Said, ok bool) {
	if t.recorder != nil {
		return t.recorder.Said(), true
	}
	r, ok := t.rewriter.(recorded)
	if _, resumes := t.Reply.(resumer); !ok || !resumes {
		return said, false
	}
	return r.Said(), true
}

// plan decides how the next engine resumes the answer. If it may not replay it, that isn't tried.
func (t *relay) plan(mayReplay bool) (ok bool) {
	t.next, t.mode = t.upstream, wire.Restart
	if !t.isSeen {
		return true
	}
	t.mode = wire.NoResume
	said, ok := t.said()
	if !ok || !said.CanGoOn() {
		return false
	}
	canReplay := mayReplay && (said.IsEmpty() || t.Task.isRepeatable(t.engine))
	isQuick := t.to.Sub(t.from) <= repeatable
	if !said.IsEmpty() && (!canReplay || !isQuick) {
		if next, ok := t.Task.continued(t.engine, &said); ok {
			t.next, t.mode = next, wire.Continue
			return true
		}
	}
	if canReplay {
		t.mode = wire.Replay
	}
	return canReplay
}

func (t *relay) begin(ctx context.Context, resp *Response) (err error) {
	t.state = wire.Streaming
	if p, ok := t.Reply.(passer); ok && t.mode == wire.Restart && p.Passes(resp) {
		t.recorder = nil
		t.rewriter, err = t.Reply.Begin(ctx, resp, nil)
		return err
	}
	decoder := t.Task.decoder(t.engine)
	if t.mode == wire.Raw {
		decoder = t.engine.(wire.Unparser).UnparsedDecoder()
		if said, ok := t.said(); ok && t.isSeen && t.Task.isRepeatable(t.engine) { // the client has the beginning of the same answer
			decoder = wire.WithoutSaid(decoder, &said)
		}
	}
	if t.mode == wire.Restart || !t.isSeen {
		t.recorder = wire.NewRecorder(decoder)
		t.rewriter, err = t.Reply.Begin(ctx, resp, t.recorder)
		return err
	}
	resp.request.log(resp.Lease).Info("an answer goes on", "way", t.mode.String())
	t.recall(resp)
	if r, ok := t.rewriter.(*eventRewriter); ok {
		m := r.timed
		m.bound, m.isResumed = &resp.contextLimit, true
	}
	t.recorder.Resume(decoder, t.mode)
	return nil
}

// end notes how an engine's answer ended, and returns the error of one that isn't complete.
func (t *relay) end(ctx context.Context, isStream bool) error {
	fault := t.fault()
	if fault == nil {
		t.state = wire.Done
		return nil
	}
	t.isSeen = isStream && t.Reply.IsSeen(t.sent)
	t.state = wire.Lost
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // whatever it looks like from here
	case t.hasDiverged():
		t.state = wire.Diverged
		return errDiverged
	case !t.isSeen:
		t.plan(true)
		return retryable(fault)
	case !fault.IsBrokenOff():
		return fault
	}
	return &engineLost{clientError: clientError{fault}, again: t.plan(true)}
}

// recall makes the recorder of an answer that was passed on until its engine was lost.
func (t *relay) recall(resp *Response) {
	if t.recorder == nil {
		said, _ := t.said()
		t.recorder = wire.Recall(said)
		t.rewriter = t.Reply.(resumer).Resume(resp, t.recorder)
	}
}

// fill reports whether the lost engine had only the end of a whole answer left to send, which the closed rewriter then does.
func (t *relay) fill(resp *Response) bool {
	if fault := t.fault(); fault == nil || !fault.IsBrokenOff() || t.hasDiverged() {
		return false
	}
	limit := t.Task.tokenLimit()
	said, ok := t.said()
	if limit <= 0 || !ok || !said.IsExact || said.HasCalls || said.Usage.Completion < limit {
		return false
	}
	t.recall(resp)
	t.recorder.Fill()
	return true
}

func (t *relay) note() {
	t.to = time.Now()
	if !t.sent {
		t.sent, t.from = true, t.to
	}
}

// hasDiverged reports whether the engine was to replay the answer and said something else.
func (t *relay) hasDiverged() bool { return t.recorder != nil && t.recorder.HasDiverged() }

// fault is the error that the engine's answer ended with; nil if it is complete.
func (t *relay) fault() *translate.Error {
	if t.recorder != nil && t.recorder.IsLost() {
		return t.recorder.Fault()
	}
	return t.rewriter.Fault()
}

// refined returns the error of an answer that could not go on: the refusal of a request that isn't the client's tells it nothing.
func (t *relay) refined(err error) error {
	e, ok := errors.AsType[*translate.Error](err)
	isRefusal := ok && (e.Kind == translate.KindContextOverflow || e.Kind == translate.KindInvalid && e.Code != crashesEngine().Code)
	if t.mode == wire.Restart || t.mode == wire.Raw || !isRefusal {
		return err
	}
	return notContinued()
}

var errDiverged = errors.New("the answer isn't repeated")

// notContinued is the error of an answer whose engine was lost, and with which no other can go on.
func notContinued() *translate.Error {
	const message = "The engine stopped in the middle of its answer, and another could not go on with it. Send the request again."
	return &translate.Error{Kind: translate.KindEngineFailed, Message: message}
}

const (
	maxTurns  = 3                // how often a request is sent again that a remote has turned away
	usualRest = time.Second      // how long a remote that turns requests away gets fewer of them, if it doesn't say
	unfitRest = 10 * time.Second // the same for one that doesn't know the model or the key
	maxRest   = 5 * time.Minute  // bounds what a remote may ask for
)

// remoteRefusal is the refusal of a request by a remote that may take it later, or that another place may take.
type remoteRefusal struct {
	clientError
	by   *supervisor.Info // that would refuse it again; nil: it may take it later
	must bool             // another place is loaded if none is there
}

// refusedByRemote returns the error of a request that a remote has refused. It is sent less if that isn't the request's fault. isChat tells
// that every model which generates text can answer requests of this kind.
func (rq *Request) refusedByRemote(lease *supervisor.Lease, resp *http.Response, fault *translate.Error, isChat bool) error {
	on, rest, why := lease.Remote(), usualRest, ""
	refused := &remoteRefusal{clientError: clientError{fault}}
	if fault.Code == remotewire.CodeLoop { // of this request alone, which says where it has been
		refused.by = &lease.Instance
		return refused
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if rest = restOf(resp.Header.Get("Retry-After"), time.Now()); fault.RetryAfter == 0 {
			fault.RetryAfter = rest
		}
	case http.StatusBadGateway: // of a proxy in front of it
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		rq.Call.Node.Remotes.Recheck(on.Name)
		switch {
		case on.Peer: // it may just have started again
			why = fault.Message
		case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusNotFound && isChat:
			rest, why = unfitRest, fault.Message
		default: // it may take other requests
			refused.by, refused.must = &lease.Instance, true
		}
	case http.StatusInternalServerError:
		refused.by = &lease.Instance
	default:
		return fault
	}
	rq.log(lease).Warn("a remote turned a request away", "status", resp.StatusCode, "error", fault)
	if refused.by == nil {
		lease.TurnedAway(rest, why)
	}
	return refused
}

// elsewhere has a request that a remote would refuse again sent to another place. It reports whether it is worth trying.
func (rq *Request) elsewhere(demand *node.Demand, by *supervisor.Info, must bool) bool {
	if rq.Target.Instance != "" || !must && !rq.Call.Node.Loads.HasOther(rq.Target, demand, by) {
		return false
	}
	demand.Tried = append(demand.Tried, by.Gen)
	return true
}

// restOf parses a Retry-After header: seconds, or a time.
func restOf(header string, now time.Time) time.Duration {
	rest := usualRest
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		rest = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		rest = at.Sub(now)
	}
	return min(max(rest, usualRest), maxRest)
}

func isNoPlace(err error) bool {
	_, wasNotLeased := errors.AsType[*endpoint.NotLeased](err)
	refused, _ := errors.AsType[schedule.Error](err)
	switch refused.Kind {
	case schedule.QueueFull, schedule.RemoteAway, schedule.NotLoaded, schedule.NeverFits, schedule.LoadFailed:
		return wasNotLeased
	default:
		return false
	}
}

// brokenRemote is the error of a request to a remote that is alive, and hasn't answered it to the end.
func brokenRemote(lease *supervisor.Lease) *translate.Error {
	return translate.NewError(translate.KindEngineFailed, "", "",
		"The remote "+lease.Remote().Name+" didn't answer the request to the end. Send it again.")
}
