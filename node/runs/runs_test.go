package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// newRuns has runs without a store.
func newRuns() *Runs { return New(Options{}) }

// begin starts a run without a store.
func begin(all *Runs, id, owner string, do func(context.Context, *Run)) (*Run, error) {
	r, err := all.add(id, owner)
	if err != nil {
		return nil, err
	}
	return r, all.start(r, do)
}

func start(t *testing.T, all *Runs, id, owner string, do func(context.Context, *Run)) *Run {
	t.Helper()
	r, err := begin(all, id, owner, do)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// followed is all of a run's log from a frame on.
func followed(ctx context.Context, r *Run, from int) (string, error) {
	var all []byte
	for {
		var err error
		if all, from, err = r.Follow(ctx, all, from); err != nil {
			return string(all), err
		}
	}
}

// Readers get every frame, whenever they come and wherever they begin, and are woken by each.
func TestRun_Follow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		r := start(t, all, "resp_1", "ada", func(_ context.Context, r *Run) {
			for i := range 4 {
				time.Sleep(time.Second)
				r.Append(fmt.Append(nil, i))
			}
		})
		read := make(chan string)
		for i := range 3 {
			go func() {
				text, err := followed(t.Context(), r, i)
				read <- fmt.Sprint(i, " ", text, " ", err)
			}()
		}
		begun := time.Now()
		if text, next, err := r.Follow(t.Context(), nil, 0); string(text) != "0" || next != 1 || err != nil || time.Since(begun) != time.Second {
			t.Errorf("%q, %d, %v after %v", text, next, err, time.Since(begun))
		}
		got := map[string]bool{<-read: true, <-read: true, <-read: true}
		for i, want := range []string{"0123", "123", "23"} {
			if want := fmt.Sprint(i, " ", want, " EOF"); !got[want] {
				t.Errorf("no reader got %q: %v", want, got)
			}
		}
		if text, err := followed(t.Context(), r, 9); text != "" || !errors.Is(err, io.EOF) {
			t.Errorf("after the last one: %q, %v", text, err)
		}
	})
}

// A reader whose client has disconnected ends, and the run goes on.
func TestRun_FollowEndsWithItsReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newRuns(), "resp_1", "ada", func(context.Context, *Run) { time.Sleep(time.Hour) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := followed(ctx, r, 0); !errors.Is(err, context.DeadlineExceeded) || r.HasEnded() {
			t.Errorf("error %v, ended: %v", err, r.HasEnded())
		}
		<-r.Done()
	})
}

// A run is found by its owner, in progress and for ten minutes after its end.
func TestRun_IsKeptForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		r := start(t, all, "resp_1", "ada", func(_ context.Context, r *Run) { r.Append([]byte("said")) })
		<-r.Done()
		if all.Get("bob", "resp_1") != nil || all.Get("ada", "resp_2") != nil || all.Get("ada", "resp_1") != r {
			t.Error("it is not its owner's alone")
		}
		time.Sleep(retention - time.Second)
		if all.Get("ada", "resp_1") != r {
			t.Error("it was forgotten too early")
		}
		time.Sleep(2 * time.Second)
		if all.Get("ada", "resp_1") != nil || all.held != 0 {
			t.Errorf("it was not forgotten: %d bytes", all.held)
		}
		if _, err := followed(t.Context(), r, 0); !errors.Is(err, ErrTrimmed) {
			t.Errorf("a reader of it: %v", err)
		}
	})
}

func TestRun_Cancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		var cause error
		do := func(ctx context.Context, r *Run) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			r.Append([]byte("the end"))
		}
		r := start(t, all, "resp_1", "ada", do)
		r.Cancel()
		if text, err := followed(t.Context(), r, 0); text != "the end" || !errors.Is(err, io.EOF) || !errors.Is(cause, ErrCancelled) {
			t.Errorf("it said %q, %v, and was cancelled by %v", text, err, cause)
		}
		r = start(t, all, "resp_2", "ada", do)
		r.Forget()
		<-r.Done()
		if all.Get("ada", "resp_2") != nil || !errors.Is(cause, ErrCancelled) || all.held >= 2*runOverhead {
			t.Errorf("a run that is forgotten was cancelled by %v; %d bytes are held", cause, all.held)
		}
		all.Close()
	})
}

// When the server ends, runs are cancelled and have some seconds to end. One that doesn't end delays the server no longer.
func TestRun_EndsWithTheNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		var cause error
		start(t, all, "resp_1", "ada", func(ctx context.Context, _ *Run) {
			<-ctx.Done()
			time.Sleep(time.Second)
			cause = context.Cause(ctx)
		})
		begun := time.Now()
		all.Close()
		if !errors.Is(cause, ErrShutDown) || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), cause)
		}
		if _, err := begin(all, "resp_2", "ada", nil); !errors.Is(err, ErrShutDown) {
			t.Errorf("a later one: %v", err)
		}
		all = newRuns()
		start(t, all, "resp_1", "ada", func(context.Context, *Run) { time.Sleep(time.Hour) })
		begun = time.Now()
		all.Close()
		if took := time.Since(begun); took != closeTimeout {
			t.Errorf("a run that doesn't end held the end up for %v", took)
		}
		time.Sleep(time.Hour) // the bubble has to be empty
	})
}

func TestRun_AreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		over := make(chan struct{})
		wait := func(context.Context, *Run) { <-over }
		for i := range mostPerOwner {
			start(t, all, fmt.Sprint("ada ", i), "ada", wait)
		}
		var limit *access.LimitError
		if _, err := begin(all, "ada more", "ada", wait); !errors.As(err, &limit) {
			t.Errorf("an owner's next one: %v", err)
		}
		for i := range mostInAll - mostPerOwner {
			start(t, all, fmt.Sprint("others ", i), fmt.Sprint("owner ", i), wait)
		}
		if _, err := begin(all, "bob", "bob", wait); !errors.As(err, &limit) {
			t.Errorf("one more: %v", err)
		}
		close(over)
		synctest.Wait()
		start(t, all, "ada more", "ada", wait)
		all.Close()
	})
}

// A log that grows too long loses its beginning. A reader that keeps up with it loses nothing, one that doesn't is told.
func TestRun_LogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		all.perRun = 10_000
		frame, more := make([]byte, 100), make(chan struct{})
		r := start(t, all, "resp_1", "ada", func(_ context.Context, r *Run) {
			for range more {
				r.Append(frame)
			}
		})
		from := 0
		for i := range 1000 {
			more <- struct{}{}
			var err error
			if _, from, err = r.Follow(t.Context(), nil, from); err != nil || from != i+1 {
				t.Fatalf("frame %d: %v, the next is %d", i, err, from)
			}
			if r.log.bytes > all.perRun {
				t.Fatalf("%d bytes", r.log.bytes)
			}
		}
		if _, _, err := r.Follow(t.Context(), nil, 0); !errors.Is(err, ErrTrimmed) {
			t.Errorf("a reader of the beginning: %v", err)
		}
		close(more)
		<-r.Done()
		r.Forget()
		if all.held != 0 {
			t.Errorf("%d bytes are still counted", all.held)
		}
	})
}

// Where all logs together are too large, the owner with the most loses some, and what has ended goes first.
func TestRun_LogsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		all.inTotal = 100_000
		over := make(chan struct{})
		says := func(bytes int, until <-chan struct{}) func(context.Context, *Run) {
			return func(_ context.Context, r *Run) {
				for range bytes / 1000 {
					r.Append(make([]byte, 1000))
				}
				<-until
			}
		}
		ended := make(chan struct{})
		close(ended)
		modest := start(t, all, "bob", "bob", says(20_000, ended))
		done := start(t, all, "ada 1", "ada", says(40_000, ended))
		synctest.Wait()
		running := start(t, all, "ada 2", "ada", says(200_000, over))
		synctest.Wait()
		if all.held > all.inTotal {
			t.Errorf("%d bytes", all.held)
		}
		if all.Get("ada", "ada 1") != nil || all.Get("ada", "ada 2") != running {
			t.Error("the run that has ended was not dropped first, or the other was, too")
		}
		if _, err := followed(t.Context(), done, 0); !errors.Is(err, ErrTrimmed) {
			t.Errorf("a reader of it: %v", err)
		}
		if text, err := followed(t.Context(), modest, 0); len(text) != 20_000 || !errors.Is(err, io.EOF) {
			t.Errorf("another owner's has %d bytes: %v", len(text), err)
		}
		close(over)
		all.Close()
	})
}

// The log keeps what it was given, whatever becomes of the buffer; a piece is bounded.
func TestRun_LogHasItsOwnBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRuns()
		r := start(t, all, "resp_1", "ada", func(_ context.Context, r *Run) {
			frame := bytes.Repeat([]byte("a"), runPiece)
			r.Append(frame)
			clear(frame)
			r.Append(frame)
		})
		<-r.Done()
		text, next, err := r.Follow(t.Context(), []byte("before"), 0)
		if string(text) != "before"+string(bytes.Repeat([]byte("a"), runPiece)) || next != 1 || err != nil {
			t.Errorf("%d bytes, next %d, %v", len(text), next, err)
		}
		all.Close()
	})
}

// newTurn is the beginning of a turn.
func newTurn(id string) *store.Turn {
	return &store.Turn{ID: id, Owner: "ada", Model: "a/b", Status: store.InProgress}
}

// A run is in the store from its start to its end.
func TestStart_IsStored(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "store.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	all := New(Options{Store: func() *store.Store { return s }, Maker: func() string { return "" }})
	status := func(id string) store.Status {
		turn, err := s.Get(t.Context(), "ada", id)
		if err != nil {
			return store.Status(err.Error())
		}
		return turn.Status
	}
	finish, finished := make(chan struct{}), make(chan error, 1)
	r, err := all.Start(t.Context(), newTurn("resp_1"), func(ctx context.Context, r *Run) {
		<-finish
		end := newTurn("resp_1")
		end.Status = store.Completed
		finished <- r.Finish(ctx, end)
	})
	if err != nil || status("resp_1") != store.InProgress {
		t.Fatalf("%v, it is %s", err, status("resp_1"))
	}
	close(finish)
	<-r.Done()
	if err := <-finished; err != nil || status("resp_1") != store.Completed {
		t.Errorf("%v, it is %s", err, status("resp_1"))
	}
	_, err = all.Start(t.Context(), newTurn("resp_1"), nil)
	if _, taken := errors.AsType[*store.Exists](err); !taken || all.active != 0 {
		t.Errorf("an id that is taken: %v; %d runs are active", err, all.active)
	}
}
