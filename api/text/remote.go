package text

import (
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
)

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

// isNoPlace reports whether a request got no place at all.
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
