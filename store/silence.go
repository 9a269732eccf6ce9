package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A connection may be lost without either end's noticing: a firewall forgets it, a proxy doesn't pass anything on, a machine is cut off.
// Then a statement would wait for its answer until the system gives up, after minutes.
const (
	// postgresSilence is how long a statement may take before it is found out whether the server answers.
	postgresSilence = 5 * time.Second
	// probeTimeout bounds how long a new connection may take.
	probeTimeout = 2 * time.Second
	// outageKept is how long operations are refused at once after a probe has failed, so that those in the queue don't wait one after
	// the other.
	outageKept = time.Second
)

// silence watches over the statements of a PostgreSQL database.
type silence struct {
	after   time.Duration // postgresSilence
	within  time.Duration // probeTimeout
	probing sync.Mutex
	probed  atomic.Pointer[probed]
}

// probed is what a probe has found. The error is nil if the server answers.
type probed struct {
	err error
	at  time.Time
}

// silent says that an answer didn't come.
type silent struct{ reason error }

func (e *silent) Error() string { return e.reason.Error() }
func (e *silent) Unwrap() error { return e.reason }

var errNoAnswer = errors.New("the connection gives no answer")

// attempt calls do with a context that ends when the server is found not to answer. If it answers on a new connection, the first attempt
// ends, too, since only its connection may be lost. A slow statement is so begun twice, and then has all the time of ctx.
func (p *postgres) attempt(ctx context.Context, isFirst bool, do func(context.Context) error) error {
	if last := p.silence.probed.Load(); last != nil && last.err != nil && time.Since(last.at) < outageKept {
		return &silent{last.err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(p.silence.after, func() {
		for ctx.Err() == nil {
			if err := p.probe(); err != nil {
				cancel(&silent{err})
			} else if isFirst {
				cancel(&silent{errNoAnswer})
			}
			select {
			case <-ctx.Done():
			case <-time.After(p.silence.after):
			}
		}
	})
	defer watch.Stop()
	err := do(ctx)
	if found, ok := errors.AsType[*silent](context.Cause(ctx)); ok && err != nil {
		return found
	}
	return err
}

// probe opens a connection, and returns why that isn't possible. Those who probe at the same time share the result.
func (p *postgres) probe() error {
	asked := time.Now()
	p.silence.probing.Lock()
	defer p.silence.probing.Unlock()
	if last := p.silence.probed.Load(); last != nil && last.at.After(asked) {
		return last.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.silence.within)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, p.config.Copy())
	if err == nil {
		_ = conn.Close(ctx)
	}
	if _, answers := errors.AsType[*pgconn.PgError](err); answers { // such as that all connections are taken
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("it doesn't answer, nor to a new connection: %w", err)
		p.closeIdle() // they are lost as well
	}
	p.silence.probed.Store(&probed{err, time.Now()})
	return err
}
