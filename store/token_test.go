package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tokenOf returns a token in the form in which it is stored.
func tokenOf(id string) Token {
	return Token{ID: id, Hash: "hash of " + id, Name: "für " + id, Rights: json.RawMessage(`{"scopes":["admin"]}`), Created: time.Unix(0, 1e18+int64(len(id)))}
}

func TestToken(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		a, b := tokenOf("a"), tokenOf("bb")
		b.Expires = time.Unix(0, 2e18)
		must(t, s.PutToken(ctx, b))
		must(t, s.PutToken(ctx, a))
		all, err := s.Tokens(ctx)
		must(t, err)
		if diff := cmp.Diff([]Token{a, b}, all); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		var exists *Exists
		if err := s.PutToken(ctx, a); !errors.As(err, &exists) {
			t.Errorf("twice: %v", err)
		}
		b.Name, b.Rights, b.Expires = "other", json.RawMessage(`{}`), time.Time{}
		must(t, s.UpdateToken(ctx, b))
		used := time.Unix(0, 15e17)
		must(t, s.TouchTokens(ctx, map[string]time.Time{"another": used, "bb": used}))
		must(t, s.TouchTokens(ctx, map[string]time.Time{"bb": used.Add(-time.Hour)})) // later uses count
		b.LastUsed = used
		got, err := s.Token(ctx, "bb")
		if diff := cmp.Diff(b, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, ids := range [][]string{{"bb"}, {"bb", "nobody", "\x00"}, append(make([]string, 0, 1201), append(strings.Split(strings.Repeat("x ", 1200), " "), "bb")...)} {
			if some, err := s.TokensByID(ctx, ids); err != nil || len(some) != 1 || !cmp.Equal(some[0], b) {
				t.Errorf("%d ids: %+v, %v", len(ids), some, err)
			}
		}
		if none, err := s.TokensByID(ctx, nil); err != nil || len(none) != 0 {
			t.Errorf("%+v, %v", none, err)
		}
		must(t, s.DeleteToken(ctx, "a"))
		for name, err := range map[string]error{
			"delete": s.DeleteToken(ctx, "a"), "update": s.UpdateToken(ctx, a), "strange": s.DeleteToken(ctx, "\x00"), "strange, too": s.UpdateToken(ctx, Token{ID: "\xff"}),
		} {
			if _, ok := errors.AsType[*NotFound](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		}
		var missing *NotFound
		for _, id := range []string{"a", "", "\x00", "\xff", "bb'--"} {
			if _, err := s.Token(ctx, id); !errors.As(err, &missing) {
				t.Errorf("%q: %v", id, err)
			}
		}
		var invalid *Invalid
		for _, bad := range []Token{{ID: "\x00", Hash: "x"}, {ID: "x", Hash: "\xff"}, {ID: "x", Hash: "x", Name: "\x00"}} {
			if err := s.PutToken(ctx, bad); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		b.Name = "\x00"
		if err := s.UpdateToken(ctx, b); !errors.As(err, &invalid) {
			t.Errorf("%v", err)
		}
	})
}

func TestUsage(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		s, other := open(t, at), open(t, at)
		ctx := t.Context()
		key := func(day int, owner string) UsageKey { return UsageKey{day, owner, "a/b"} }
		hour := func(hour int, owner string) HourKey { return HourKey{hour, owner, "a/b"} }
		const rounds = 20
		var all sync.WaitGroup
		for _, s := range []*Store{s, other} { // as two processes
			all.Go(func() {
				for range rounds {
					err := s.AddUsage(ctx, map[HourKey]UsageCount{
						hour(10*24, "ann"): {0, 20, 1}, hour(10*24+23, "ann"): {1, 0, 2}, hour(10*24, "bob"): {1, 0, 1},
						hour(11*24, "ann"): {2, 5, 5}, hour(12*24+1, ""): {1, 1, 1},
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		const n = 2 * rounds
		for name, tt := range map[string]struct {
			get  func() (map[UsageKey]UsageCount, error)
			want map[UsageKey]UsageCount
		}{
			"some days": {func() (map[UsageKey]UsageCount, error) { return s.Usage(ctx, 10, 11) }, map[UsageKey]UsageCount{
				key(10, "ann"): {n, 20 * n, 3 * n}, key(10, "bob"): {n, 0, n}, key(11, "ann"): {2 * n, 5 * n, 5 * n},
			}},
			"one owner": {func() (map[UsageKey]UsageCount, error) { return s.UsageOf(ctx, "ann", 11, 99) }, map[UsageKey]UsageCount{key(11, "ann"): {2 * n, 5 * n, 5 * n}}},
			"nobody's":  {func() (map[UsageKey]UsageCount, error) { return s.UsageOf(ctx, "", 0, 99) }, map[UsageKey]UsageCount{key(12, ""): {n, n, n}}},
			"no days":   {func() (map[UsageKey]UsageCount, error) { return s.Usage(ctx, 11, 10) }, map[UsageKey]UsageCount{}},
		} {
			got, err := tt.get()
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		if n := rows(t, s, "token_usage"); n != 4 {
			t.Error(fmt.Sprint(n, " rows"))
		}
		for name, tt := range map[string]struct {
			owner    *string
			from, to int
			want     map[HourKey]UsageCount
		}{
			"all owners together": {nil, 10 * 24, 11*24 - 1, map[HourKey]UsageCount{hour(10*24, ""): {n, 20 * n, 2 * n}, hour(10*24+23, ""): {n, 0, 2 * n}}},
			"one owner":           {new("ann"), 10*24 + 1, 99 * 24, map[HourKey]UsageCount{hour(10*24+23, "ann"): {n, 0, 2 * n}, hour(11*24, "ann"): {2 * n, 5 * n, 5 * n}}},
			"nobody's":            {new(""), 0, 99 * 24, map[HourKey]UsageCount{hour(12*24+1, ""): {n, n, n}}},
			"no hours":            {nil, 0, 9 * 24, map[HourKey]UsageCount{}},
		} {
			got, err := s.HourlyUsage(ctx, tt.owner, tt.from, tt.to)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("hours, %s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		if err := s.PruneHours(ctx, time.Unix(int64(11*24+hoursKept)*60*60, 0)); err != nil {
			t.Error(err)
		}
		if hours, days := rows(t, s, "hourly_usage"), rows(t, s, "token_usage"); hours != 2 || days != 4 {
			t.Errorf("%d hours and %d days are left", hours, days)
		}
	})
}

func TestDay(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]int{"1970-01-01T23:59:59Z": 0, "1970-01-02T00:00:00Z": 1, "2026-01-01T01:00:00+02:00": 20453} {
		when, err := time.Parse(time.RFC3339, at)
		must(t, err)
		if got := Day(when); got != want {
			t.Errorf("%s: %d, want %d", at, got, want)
		}
	}
}
