package store

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestBeat_ListsTheServers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		a := &Node{Name: "a:1", Boot: "1", Address: "https://a:1", Key: "of a", Version: "v1", About: `{"waiting":1}`}
		all, err := s.Beat(t.Context(), a, time.Minute)
		must(t, err)
		if len(all) != 1 || all[0].Age < 0 || all[0].Age > time.Minute || time.Since(all[0].Started).Abs() > time.Minute {
			t.Fatalf("%+v", all)
		}
		started := all[0].Started
		a.About, a.Leaving = "{}", true
		b := &Node{Name: "b:1", Boot: "2", Address: "https://b:1", Key: "of b", Version: "v2", About: "{}"}
		_, err = s.Beat(t.Context(), a, time.Minute)
		must(t, err)
		all, err = s.Beat(t.Context(), b, time.Minute)
		must(t, err)
		for i := range all {
			all[i].Age = 0
		}
		if len(all) != 2 || !all[0].Started.Equal(started) {
			t.Fatalf("%+v", all)
		}
		if a.Started = started; all[0] != *a {
			t.Errorf("%+v, want %+v", all[0], *a)
		}

		again := &Node{Name: "a:1", Boot: "3", Address: "https://a:1", Key: "new", Version: "v2", About: "{}"}
		_, err = s.Beat(t.Context(), again, time.Minute)
		must(t, err)
		must(t, s.Leave(t.Context(), "a:1", "1")) // of the first start, which ends late
		must(t, s.Leave(t.Context(), "b:1", "2"))
		all, err = s.Nodes(t.Context())
		must(t, err)
		if len(all) != 1 || all[0].Boot != "3" || all[0].Key != "new" || all[0].Leaving {
			t.Errorf("%+v", all)
		}
	})
}

// Those that have written nothing for long are forgotten.
func TestBeat_ForgetsOldServers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		_, err := s.Beat(t.Context(), &Node{Name: "old", Boot: "1"}, time.Minute)
		must(t, err)
		must(t, s.write(t.Context(), 0, func(tx *tx) error {
			_, err := tx.exec("UPDATE nodes SET seen = seen - $1", (30 * time.Second).Nanoseconds())
			return err
		}))
		all, err := s.Beat(t.Context(), &Node{Name: "new", Boot: "2"}, time.Minute)
		must(t, err)
		if len(all) != 2 || all[1].Age < 30*time.Second {
			t.Fatalf("%+v", all)
		}
		all, err = s.Beat(t.Context(), &Node{Name: "new", Boot: "2"}, 10*time.Second)
		must(t, err)
		if len(all) != 1 || all[0].Name != "new" {
			t.Errorf("%+v", all)
		}
	})
}

// No change is lost, however many servers make them at a time.
func TestChangeLimits_OneAfterTheOther(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		stores := []*Store{open(t, at), open(t, at)}
		const each = 20
		var all sync.WaitGroup
		for _, s := range stores {
			for range each {
				all.Go(func() {
					if err := s.ChangeLimits(t.Context(), "tok_1", func(state string, _ time.Time) (string, error) {
						n, _ := strconv.Atoi(state)
						return strconv.Itoa(n + 1), nil
					}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		must(t, stores[0].ChangeLimits(t.Context(), "tok_1", func(state string, now time.Time) (string, error) {
			if state != strconv.Itoa(len(stores)*each) || time.Since(now).Abs() > time.Minute {
				t.Errorf("%q at %s", state, now)
			}
			return state, nil
		}))
	})
}

func TestChangeLimits_Refused(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		must(t, s.ChangeLimits(t.Context(), "tok_1", func(string, time.Time) (string, error) { return "kept", nil }))
		no := errors.New("no")
		if err := s.ChangeLimits(t.Context(), "tok_1", func(string, time.Time) (string, error) { return "changed", no }); !errors.Is(err, no) {
			t.Errorf("%v", err)
		}
		must(t, s.ChangeLimits(t.Context(), "tok_1", func(state string, _ time.Time) (string, error) {
			if state != "kept" {
				t.Errorf("%q", state)
			}
			return state, nil
		}))
		must(t, s.PruneLimits(t.Context(), time.Hour))
		if n := rows(t, s, "limits"); n != 1 {
			t.Errorf("%d rows", n)
		}
		must(t, s.PruneLimits(t.Context(), -time.Second)) // 0 would spare what was changed in this millisecond
		if n := rows(t, s, "limits"); n != 0 {
			t.Errorf("%d rows after that time", n)
		}
	})
}
