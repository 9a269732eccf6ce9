package access

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

var ann = &Identity{Owner: "ann", Limits: Limits{TokensPerDay: 100}}

func quotaOf(used int64) *Quota {
	q := newQuota(Options{IsClustered: func() bool { return false }})
	q.change("ann", func(o *own) { o.day, o.tokens = store.Day(time.Now()), used })
	return q
}

func TestReserve(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		used, held int64
		need       Need
		each       int
		refusal    string // part of it; empty: none
	}{
		"it fits":                        {0, 0, Need{Bytes: 40, Prompts: 1, Choices: 1, Completion: 60}, 60, ""},
		"it fits beside others":          {10, 40, Need{Bytes: 10, Prompts: 1, Choices: 2, Completion: 20}, 20, ""},
		"it fits, but for a token":       {10, 41, Need{Bytes: 10, Prompts: 1, Choices: 2, Completion: 20}, 0, "is reserved"},
		"alone, what is left":            {50, 0, Need{Bytes: 40, Prompts: 1, Choices: 1, Completion: 60}, 40, ""},
		"alone, shared by the choices":   {50, 0, Need{Bytes: 40, Prompts: 1, Choices: 4, Completion: 60}, 10, ""},
		"alone, with a prompt too long":  {50, 0, Need{Bytes: 4000, Prompts: 1, Choices: 1, Completion: 60}, 1, ""},
		"alone, with too many choices":   {50, 0, Need{Bytes: 40, Prompts: 1, Choices: 51, Completion: 60}, 0, "51 choices"},
		"nothing is left":                {100, 0, Need{Bytes: 40, Prompts: 1, Choices: 1, Completion: 60}, 0, "limit of tokens per day"},
		"beside others, with a long one": {0, 1, Need{Bytes: 4000, Prompts: 1, Choices: 1, Completion: 1}, 0, "is reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := quotaOf(tt.used)
				q.change("ann", func(o *own) { o.held = tt.held })
				each, done, err := q.Reserve(t.Context(), ann, tt.need, 0)
				if err == nil {
					done()
				}
				var limit *LimitError
				if (err != nil) != (tt.refusal != "") || err != nil && (!errors.As(err, &limit) || !strings.Contains(limit.Message, tt.refusal) || limit.RetryAfter <= 0) {
					t.Fatalf("%v, want %q", err, tt.refusal)
				}
				if each != tt.each {
					t.Errorf("%d tokens for each choice, want %d", each, tt.each)
				}
				if held := q.owners["ann"].held; held != tt.held {
					t.Errorf("%d tokens are reserved behind it", held)
				}
			})
		})
	}
}

// A client that sends one request after the other may be quicker than the one before is settled.
func TestReserve_WaitsForWhatIsBeingSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, need := quotaOf(0), Need{Bytes: 30, Prompts: 1, Choices: 1, Completion: 60}
		_, done, err := q.Reserve(t.Context(), ann, need, 0)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(settleTime / 2)
			done()
		}()
		each, done2, err := q.Reserve(t.Context(), ann, need, 0)
		if err != nil || each != 60 {
			t.Fatalf("%d, %v", each, err)
		}
		done2()
	})
}

func TestNeed_WithinAContext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		need Need
		want int64
	}{
		"no limit is the context":        {Need{Bytes: 100, Prompts: 1, Choices: 1, Completion: -1}, 100 + templateTokens + 4096},
		"no more than the context":       {Need{Bytes: 100, Prompts: 1, Choices: 2, Completion: 1 << 40}, 100 + templateTokens + 2*4096},
		"a prompt is within the context": {Need{Bytes: 1 << 20, Prompts: 2, Choices: 2, Completion: 5}, 2*4096 + 10},
		"texts":                          {Need{Bytes: 100, Prompts: 3}, 100 + 3*templateTokens},
	} {
		if got := tt.need.within(4096).tokens(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
