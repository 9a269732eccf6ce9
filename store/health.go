package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
)

// Latency has how long reads and writes took, in seconds, and how many of them failed because of the database. The time of a
// write ends with the commit of its transaction, and includes the wait for others.
type Latency struct {
	Reads, Writes             histogram.Histogram
	FailedReads, FailedWrites uint64
}

// NewLatency returns an empty Latency.
func NewLatency() Latency {
	return Latency{Reads: histogram.New(histogram.Queries), Writes: histogram.New(histogram.Queries)}
}

// Add adds what another store took.
func (l *Latency) Add(o Latency) {
	l.Reads.Add(o.Reads)
	l.Writes.Add(o.Writes)
	l.FailedReads += o.FailedReads
	l.FailedWrites += o.FailedWrites
}

// failureFor is how long [Store.Ping] reports a failure after the database works again: some connections or pages may not.
const failureFor = 5 * time.Second

// failure is a failure of the database, as an operation met it.
type failure struct {
	err error
	at  time.Time
}

// health is how the operations of a store have gone.
type health struct {
	failureFor time.Duration

	mu      sync.Mutex
	latency Latency
	last    *failure // that an operation met; nil: none since Ping has last returned nil
}

// observe counts an operation that began at a time, and remembers a failure of the database.
func (h *health) observe(isWrite bool, begun time.Time, err error) {
	h.count(isWrite, begun, err)
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, ErrBusy) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.last = &failure{err, time.Now()}
	}
}

func (h *health) count(isWrite bool, begun time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	times, failed := &h.latency.Reads, &h.latency.FailedReads
	if isWrite {
		times, failed = &h.latency.Writes, &h.latency.FailedWrites
	}
	times.ObserveTime(time.Since(begun))
	if err != nil && !isRefusal(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		*failed++
	}
}

// Latency returns how long the store took so far.
func (s *connection) Latency() Latency {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	l := s.health.latency
	l.Reads, l.Writes = l.Reads.Clone(), l.Writes.Clone()
	return l
}

// Ping returns why the database can't be used, also if it can only be read. It writes only if an operation has failed since it last
// returned nil.
func (s *connection) Ping(ctx context.Context) error {
	if s.writer.isClosed() {
		return ErrClosed
	}
	begun, err := time.Now(), s.db.ping(ctx)
	s.health.count(false, begun, err)
	s.health.mu.Lock()
	last := s.health.last
	s.health.mu.Unlock()
	if err != nil || last == nil {
		return err
	}
	switch err := s.write(ctx, len(sampleHash), writeSample); {
	case err != nil && ctx.Err() == nil:
		return err
	case err != nil, time.Since(last.at) < s.health.failureFor:
		return last.err
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if s.health.last == last {
		s.health.last = nil
	}
	return nil
}

const (
	insertSample = `INSERT INTO blobs (hash, refs, data) VALUES ($1, 0, $2)`
	deleteSample = `DELETE FROM blobs WHERE hash = $1`
	sampleBytes  = 64 << 10 // more than there is room for in the pages of a database on a full disk
	// sampleHash begins the hash of a sample, so that it isn't that of an image.
	sampleHash = "sample-"
)

// writeSample writes and deletes as much as an answer may have.
func writeSample(t *tx) error {
	data := make([]byte, sampleBytes)
	_, _ = rand.Read(data) // never fails
	hash := sampleHash + rand.Text()
	if _, err := t.exec(insertSample, hash, data); err != nil {
		return err
	}
	_, err := t.exec(deleteSample, hash)
	return err
}

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
