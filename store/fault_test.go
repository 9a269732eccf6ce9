package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// patiently opens a database as another program that waits until the store has tidied up, which locks it.
func patiently(path string) string { return "file:" + path + "?_pragma=busy_timeout(120000)" }

// TestSQLite_Locked: another program holds the lock.
func TestSQLite_Locked(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	root := stored(t, s, turn(nil, "root"))
	patience := s.writer.patience
	s.writer.patience = 300 * time.Millisecond
	other, err := sql.Open("sqlite", patiently(at.Path))
	must(t, err)
	t.Cleanup(func() { must(t, other.Close()) })
	other.SetMaxOpenConns(1)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // which is no reason to wait for longer
			defer cancel()
			err := s.Put(ctx, turn(root, "x"))
			if err == nil || !strings.Contains(err.Error(), "end it") && !strings.Contains(err.Error(), "with what came before") { // it came late
				t.Errorf("Put gives %v", err)
			}
		})
	}
	all.Wait()
	s.writer.patience = patience
	_, err = s.Chain(t.Context(), "", root.ID)
	must(t, err) // reading goes on
	_, err = other.ExecContext(t.Context(), "COMMIT")
	must(t, err)
	stored(t, s, turn(root, "afterwards"))
	sound(t, s)
}

// TestSQLite_LockedForAWhile: writes that can wait succeed when the other program is done, although others of their group time
// out and more arrive than fit into a group.
func TestSQLite_LockedForAWhile(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	s.writer.patience = time.Minute
	other, err := sql.Open("sqlite", patiently(at.Path))
	must(t, err)
	t.Cleanup(func() { must(t, other.Close()) })
	other.SetMaxOpenConns(1)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)
	var hasty, all sync.WaitGroup
	for range groupJobs {
		all.Go(func() {
			if err := s.Put(t.Context(), turn(nil, "patient")); err != nil {
				t.Errorf("Put gives %v", err)
			}
		})
	}
	for n := range 50 {
		hasty.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*10*time.Millisecond)
			defer cancel()
			switch err := s.Put(ctx, turn(nil, "hasty")); {
			case err == nil:
				t.Error("Put stored a turn while the database was locked")
			case !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "end it"):
				t.Errorf("Put gives %v", err)
			}
		})
	}
	hasty.Wait() // each by its own deadline, and not one after the other
	_, err = other.ExecContext(t.Context(), "COMMIT")
	must(t, err)
	all.Wait()
	if n := rows(t, s, "turns"); n != groupJobs {
		t.Errorf("%d turns are stored", n)
	}
	sound(t, s)
}

// TestSQLite_CloseWhileLocked: Close doesn't wait for the other program.
func TestSQLite_CloseWhileLocked(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	other, err := sql.Open("sqlite", patiently(at.Path))
	must(t, err)
	t.Cleanup(func() { must(t, other.Close()) })
	other.SetMaxOpenConns(1)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)
	s.writer.patience = time.Hour
	taken, result := make(chan struct{}), make(chan error)
	go func() {
		j := &job{ctx: t.Context(), by: time.Now().Add(time.Hour), run: func(*tx) error { return nil }, done: make(chan error, 1)}
		s.writer.queue <- j
		close(taken)
		result <- <-j.done
	}()
	<-taken
	must(t, s.Close())
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("what waited gets %v", err)
	}
}

// TestSQLite_FullDisk: SQLite returns the same error for a full disk and for a database with a limit of pages.
func TestSQLite_FullDisk(t *testing.T) {
	t.Parallel()
	s := open(t, backends[0].at(t))
	root := stored(t, s, turn(nil, "root"))
	_, err := s.db.(*sqliteFile).conn.ExecContext(t.Context(), "PRAGMA max_page_count = 1") // it keeps those that it has
	must(t, err)
	if err := s.Put(t.Context(), turn(root, strings.Repeat("long", 10_000))); !errors.Is(err, ErrFull) {
		t.Errorf("Put gives %v", err)
	}
	must(t, s.Delete(t.Context(), "", root.ID))
	sound(t, s)
}

// TestSQLite_OneBadTurn: some writes of a group fail halfway. One of them may end the whole transaction, as a full disk does.
func TestSQLite_OneBadTurn(t *testing.T) {
	t.Parallel()
	for name, fatal := range map[string]bool{"by itself": false, "with the transaction": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, backends[0].at(t))
			root := stored(t, s, turn(nil, "root"))
			bad := errors.New("bad")
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			var group []*job
			var want []error
			add := func(ctx context.Context, err error, run func(*tx) error) {
				group, want = append(group, &job{ctx: ctx, by: time.Now().Add(time.Hour), run: run, done: make(chan error, 1)}), append(want, err)
			}
			var good []*Turn
			for n := range 3 {
				next, half := turn(root, fmt.Sprint(n)), turn(root, "half")
				good = append(good, next)
				add(t.Context(), nil, func(t *tx) error { return prepared(next).run(t) })
				add(t.Context(), bad, func(t *tx) error { return errors.Join(second(prepared(half).next(t)), bad) })
			}
			add(cancelled, context.Canceled, func(*tx) error { t.Error("it was cancelled before its turn"); return nil })
			if fatal {
				add(t.Context(), bad, func(t *tx) error { return errors.Join(second(t.exec("ROLLBACK")), bad) })
			}
			s.writer.commit(group) // the writer has nothing to do; this decides what is in the group
			for i, j := range group {
				if err := <-j.done; !errors.Is(err, want[i]) {
					t.Errorf("turn %d of the group: %v, not %v", i, err, want[i])
				}
			}
			for _, turn := range good {
				must(t, second(s.Get(t.Context(), "", turn.ID)))
			}
			if n := rows(t, s, "turns"); n != 4 {
				t.Errorf("%d turns", n)
			}
			sound(t, s)
		})
	}
}

// prepared returns a valid turn prepared for storing.
func prepared(t *Turn) *put {
	p, err := prepare(t)
	if err != nil {
		panic(err)
	}
	return p
}

// TestWrite_GivesUpWaiting: the caller's context ends while the writer is busy.
func TestWrite_GivesUpWaiting(t *testing.T) {
	t.Parallel()
	s := open(t, backends[0].at(t))
	busy, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.write(context.Background(), 0, func(*tx) error { close(busy); <-free; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	late := turn(nil, "late")
	if err := s.Put(ctx, late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put gives %v", err)
	}
	if _, err := s.Get(t.Context(), "", late.ID); !errors.As(err, new(*NotFound)) { // reading doesn't wait
		t.Errorf("Get gives %v", err)
	}
	close(free)
	all.Wait()
}

// TestPostgres_BrokenConnections breaks all connections repeatedly during writes, reads and deletions.
func TestPostgres_BrokenConnections(t *testing.T) {
	t.Parallel()
	at := Options{URL: server.schema(t)}
	s := open(t, at)
	var schema string
	must(t, s.read(t.Context(), func(tx *tx) error {
		_, err := tx.row("SELECT current_schema()", nil, &schema)
		return err
	}))
	root := stored(t, s, turn(nil, "root"))
	for round := range 5 {
		server.run(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '"+schema+"'")
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				next := turn(root, fmt.Sprint(round, n))
				if err := s.Put(t.Context(), next); err != nil {
					t.Errorf("Put: %v", err)
				}
				if _, err := s.Chain(t.Context(), "", next.ID); err != nil {
					t.Errorf("Chain: %v", err)
				}
				if err := s.Delete(t.Context(), "", next.ID); err != nil {
					t.Errorf("Delete: %v", err)
				}
			})
		}
		all.Wait()
	}
	sound(t, s)
}

// TestPostgres_PruneLeavesWhatIsContinued continues an old conversation while it is being removed.
func TestPostgres_PruneLeavesWhatIsContinued(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: server.schema(t)})
	root := turn(nil, "root")
	root.Created = time.Now().Add(-time.Hour)
	stored(t, s, root)
	next := prepared(turn(root, "next"))
	must(t, s.write(t.Context(), 0, func(tx *tx) error {
		if err := next.run(tx); err != nil {
			return err
		}
		if removed, err := s.Prune(t.Context(), Bounds{Age: time.Minute}); removed != 0 || err != nil {
			t.Errorf("Prune removed %d, %v", removed, err)
		}
		return nil
	}))
	if got := texts(t, s, "", next.ID); len(got) != 2 {
		t.Errorf("got %q", got)
	}
	sound(t, s)
}

func TestGet_SaysThatAFileIsMissing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		made := stored(t, s, turn(nil, "x").withImage("y"))
		must(t, s.write(t.Context(), 0, func(t *tx) error {
			_, err := t.exec("DELETE FROM blobs")
			return err
		}))
		if _, err := s.Get(t.Context(), "", made.ID); err == nil || !strings.Contains(err.Error(), "a file of the stored response") {
			t.Errorf("got %v", err)
		}
	})
}
