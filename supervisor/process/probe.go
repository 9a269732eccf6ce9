package process

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// activity is the result of a query.
type activity struct {
	refused  bool // it accepts no connections
	frozen   bool // it doesn't even answer its health check
	pending  bool // it is alive, but hasn't answered the query: in some builds only its main loop does
	known    bool // work is set
	work     Work
	computes bool // it has computed since the last query that it didn't answer, or can't
}

// probe queries the engine's activity. One that can't tell what it is at is asked whether it answers at all, and the system whether it has
// computed: it uses this much of the machine.
func (u *pulse) probe(used child.Usage) activity {
	worker, ok := u.engine.(Worker)
	if !ok {
		_, _, err := u.get(u.healthPath())
		_, isChecked := u.engine.(HealthChecker)
		isFrozen := isChecked && err != nil && !openfiles.AreExhausted(err)
		return activity{refused: isRefused(err), frozen: isFrozen, computes: u.hasComputed(used)}
	}
	status, body, err := u.get(worker.Activity())
	switch {
	case isRefused(err):
		return activity{refused: true}
	case openfiles.AreExhausted(err):
		return activity{} // nothing was sent
	case err != nil:
		_, _, err := u.get(u.healthPath())
		return activity{refused: isRefused(err), frozen: err != nil, pending: err == nil, computes: u.hasComputed(used)}
	case status != http.StatusOK:
		return activity{computes: u.hasComputed(used)}
	}
	work, ok := worker.Work(body)
	return activity{known: ok, work: work, computes: !ok && u.hasComputed(used)}
}

// hasComputed reports whether the engine has computed since the last call.
func (u *pulse) hasComputed(used child.Usage) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, computes := u.effort.sample(time.Now(), used)
	return computes
}

// healthPath is what an engine can be asked to see whether it answers.
func (u *pulse) healthPath() string {
	if checker, ok := u.engine.(HealthChecker); ok {
		return checker.Health()
	}
	return "/"
}

func (u *pulse) get(path string) (status int, body []byte, _ error) {
	ctx, cancel := context.WithTimeout(u.ctx, probeTimeout)
	defer cancel()
	resp, err := u.ask(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxProbe))
	return resp.StatusCode, body, err
}

// refusedOnWindows is WSAECONNREFUSED, which package syscall has no name for.
const refusedOnWindows = syscall.Errno(10061)

// isRefused reports whether nothing listens at the engine's address.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, refusedOnWindows)
}
