package store

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// begun stores a turn in progress, which has no answer yet.
func begun(t testing.TB, s *Store, turn *Turn) *Turn {
	t.Helper()
	turn.Status, turn.Out = InProgress, nil
	return stored(t, s, turn)
}

// finished is how a turn that was begun ends.
func finished(t *Turn, status Status) *Turn {
	end := *t
	end.Status = status
	end.Out = []translate.Item{message(translate.RoleAssistant, "the end")}
	end.Request = json.RawMessage(`{"of":"the end"}`)
	end.Usage = translate.Usage{Prompt: 3, Completion: 2}
	return &end
}

func TestFinish_ReplacesTheTurn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		parent := turn(nil, "first").withImage("in both")
		parent.Owner = "tok_1"
		stored(t, s, parent)
		first := begun(t, s, turn(parent, "second").withImage("in both").withImage("no more"))
		got, err := s.Get(t.Context(), "tok_1", first.ID)
		must(t, err)
		if got.Status != InProgress || len(got.Out) != 0 {
			t.Errorf("in progress: %+v", got)
		}
		must(t, s.Put(t.Context(), first)) // does nothing
		end := finished(first, Completed)
		end.In = turn(nil, "second").withImage("in both").withImage("new").In
		for range 2 { // the second time, it is there
			must(t, s.Finish(t.Context(), end))
		}
		got, err = s.Get(t.Context(), "tok_1", first.ID)
		must(t, err)
		media(end, func(i *translate.Media) { i.Hash = hashOf(i.Data) })
		if diff := cmp.Diff(end, got); diff != "" {
			t.Error(diff)
		}
		if n := rows(t, s, "unfinished"); n != 0 {
			t.Errorf("%d turns are in progress", n)
		}
		if n := rows(t, s, "blobs"); n != 2 {
			t.Errorf("%d images", n)
		}
		stored(t, s, turn(end, "third"))
		must(t, s.Finish(t.Context(), end)) // also when others continue it
		sound(t, s)
	})
}

func TestFinish_Refuses(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		mine, deleted, complete := begun(t, s, turn(nil, "mine")), begun(t, s, turn(nil, "deleted")), stored(t, s, turn(nil, "complete"))
		cancelled := begun(t, s, turn(nil, "cancelled"))
		must(t, s.Finish(t.Context(), finished(cancelled, Cancelled)))
		must(t, s.Delete(t.Context(), "", deleted.ID))
		hidden := begun(t, s, turn(nil, "hidden"))
		stored(t, s, turn(hidden, "continues it"))
		must(t, s.Delete(t.Context(), "", hidden.ID))
		notFound := func(id string) error { return &NotFound{id} }
		exists := func(id string) error { return &Exists{id} }
		others := finished(mine, Completed)
		others.Owner = "tok_2"
		for name, c := range map[string]struct {
			turn *Turn
			want func(id string) error
		}{
			"never begun":     {finished(turn(nil, "x"), Completed), notFound},
			"another owner's": {others, notFound},
			"deleted":         {finished(deleted, Completed), notFound},
			"hidden":          {finished(hidden, Completed), notFound},
			"complete":        {finished(complete, Completed), exists},
			"cancelled":       {finished(cancelled, Completed), exists},
			"not finished":    {mine, func(id string) error { return &Invalid{id, "it isn't finished"} }},
		} {
			if diff := cmp.Diff(c.want(c.turn.ID), s.Finish(t.Context(), c.turn)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if got, err := s.Get(t.Context(), "", mine.ID); err != nil || got.Status != InProgress {
			t.Errorf("the one that is in progress: %+v, %v", got, err)
		}
		sound(t, s)
	})
}

// What a server that crashed was making becomes failed, what another is making doesn't.
func TestFailUnfinished(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		crashed, alive, complete, deleted := begun(t, s, turn(nil, "a")), begun(t, s, turn(nil, "b")), begun(t, s, turn(nil, "c")), begun(t, s, turn(nil, "d"))
		must(t, s.Finish(t.Context(), finished(complete, Completed)))
		must(t, s.Delete(t.Context(), "", deleted.ID))
		must(t, s.write(t.Context(), 0, func(tx *tx) error { // all of them long ago
			_, err := tx.exec("UPDATE unfinished SET alive = alive - $1", time.Hour.Nanoseconds())
			return err
		}))
		gone, err := s.Renew(t.Context(), []string{deleted.ID, alive.ID, complete.ID})
		must(t, err)
		want := []string{complete.ID, deleted.ID}
		if diff := cmp.Diff(want, gone); diff != "" {
			t.Errorf("which are no longer in progress (-want +got):\n%s", diff)
		}
		for _, n := range []int{1, 0} {
			if failed, err := s.FailUnfinished(t.Context(), time.Minute, time.Minute); failed != n || err != nil {
				t.Errorf("%d failed, %v", failed, err)
			}
		}
		for id, want := range map[string]Status{crashed.ID: Failed, alive.ID: InProgress, complete.ID: Completed} {
			if got, err := s.Get(t.Context(), "", id); err != nil || got.Status != want {
				t.Errorf("%+v, %v; want it %s", got, err, want)
			}
		}
		var exists *Exists
		if err := s.Finish(t.Context(), finished(crashed, Completed)); !errors.As(err, &exists) {
			t.Errorf("the one that failed has ended once more: %v", err)
		}
		sound(t, s)
	})
}

// It is the same when the process that made the answers was killed.
func TestFailUnfinished_AfterACrash(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		s, err := Open(t.Context(), at)
		must(t, err)
		crashed := begun(t, s, turn(nil, "a").withImage("of it"))
		must(t, s.Close())
		s = open(t, at)
		if n, err := s.FailUnfinished(t.Context(), 0, 0); n != 1 || err != nil {
			t.Errorf("%d failed, %v", n, err)
		}
		got, err := s.Get(t.Context(), "", crashed.ID)
		must(t, err)
		if got.Status != Failed || len(got.In) != 1 || len(got.In[0].Parts) != 2 {
			t.Errorf("%+v", got)
		}
		must(t, s.Delete(t.Context(), "", crashed.ID))
		sound(t, s)
	})
}

// Turns whose maker has left the cluster become failed before the others.
func TestFailUnfinished_OfServersThatAreGone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		listed, gone, alone := turn(nil, "a"), turn(nil, "b"), turn(nil, "c")
		listed.Maker, gone.Maker = "here", "gone"
		for _, turn := range []*Turn{listed, gone, alone} {
			turn.Status, turn.Out = InProgress, nil
			must(t, s.Announce(t.Context(), turn))
		}
		_, err := s.Beat(t.Context(), &Node{Name: "a:1", Boot: "here"}, time.Minute)
		must(t, err)
		for _, n := range []int{1, 0} {
			if failed, err := s.FailUnfinished(t.Context(), time.Minute, 0); failed != n || err != nil {
				t.Errorf("%d failed, %v", failed, err)
			}
		}
		for id, want := range map[string]Status{listed.ID: InProgress, gone.ID: Failed, alone.ID: InProgress} {
			if got, err := s.Get(t.Context(), "", id); err != nil || got.Status != want {
				t.Errorf("%+v, %v; want it %s", got, err, want)
			}
		}
		sound(t, s)
	})
}

// A single turn is given up if its maker is gone or has been silent, and no other one is.
func TestGiveUp(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		ids := map[string]string{}
		for _, maker := range []string{"here", "late", "gone", ""} {
			turn := turn(nil, "by "+maker)
			turn.Maker, turn.Status, turn.Out = maker, InProgress, nil
			must(t, s.Announce(t.Context(), turn))
			ids[maker] = turn.ID
		}
		for _, boot := range []string{"here", "late"} {
			_, err := s.Beat(t.Context(), &Node{Name: boot + ":1", Boot: boot}, time.Hour)
			must(t, err)
		}
		must(t, s.write(t.Context(), 0, func(tx *tx) error {
			_, err := tx.exec("UPDATE nodes SET seen = seen - $1 WHERE boot = 'late'", (30 * time.Second).Nanoseconds())
			return err
		}))
		for maker, want := range map[string]bool{"here": false, "late": true, "gone": true, "": false} {
			got, err := s.GiveUp(t.Context(), ids[maker], 10*time.Second)
			if must(t, err); got != want {
				t.Errorf("the turn of %q: given up is %t", maker, got)
			}
			if turn, err := s.Get(t.Context(), "", ids[maker]); err != nil || (turn.Status == Failed) != want {
				t.Errorf("%+v, %v", turn, err)
			}
		}
		if got, err := s.GiveUp(t.Context(), "resp_unknown", 0); got || err != nil {
			t.Errorf("%t, %v", got, err)
		}
		sound(t, s)
	})
}

// What is announced isn't flushed to disk, and all the same is there when the process has been killed.
func TestAnnounce_OutlivesTheProcess(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "lmcaddy.db")})
	db := s.db.(*sqliteFile)
	flushes := func() (level int) {
		err := db.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level)
		must(t, err)
		return level
	}
	const normal, full = 1, 2
	announced := turn(nil, "a")
	announced.Status, announced.Out = InProgress, nil
	must(t, s.Announce(t.Context(), announced))
	if level := flushes(); level != normal {
		t.Errorf("an announcement is committed with synchronous = %d", level)
	}
	killed := Options{Path: filepath.Join(t.TempDir(), "lmcaddy.db")} // what a process that is killed now leaves
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(db.path + end)
		must(t, err)
		must(t, os.WriteFile(killed.Path+end, data, 0o600))
	}
	if got, err := open(t, killed).Get(t.Context(), "", announced.ID); err != nil || got.Status != InProgress {
		t.Errorf("after the process was killed: %+v, %v", got, err)
	}
	must(t, s.Finish(t.Context(), finished(announced, Completed)))
	if level := flushes(); level != full {
		t.Errorf("an answer is committed with synchronous = %d", level)
	}
}
