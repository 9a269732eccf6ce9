package warm

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// before returns a speed that was measured some time before noon.
func before(ago time.Duration, rate float64) Speed { return Speed{rate, noon.Add(-ago)} }

const (
	hour = time.Hour
	long = ratesCount
	most = time.Duration(1<<63 - 1)
)

// To restore a state pays if reading it, with a quarter more and 50 ms, takes no longer than processing the prompt.
func TestRates_Balance(t *testing.T) {
	t.Parallel()
	known := Rates{Prompt: time.Millisecond, Restore: before(0, 1e8)}
	for name, tt := range map[string]struct {
		rates  Rates
		tokens int
		bytes  int64
		want   bool
	}{
		"as fast":                           {known, 550, 40e6, true}, // 500 ms and 50 ms
		"slower":                            {known, 549, 40e6, false},
		"a large file":                      {known, 550, 41e6, false},
		"a fast processor":                  {Rates{Prompt: time.Millisecond / 2, Restore: known.Restore}, 550, 40e6, false},
		"less than it takes to ask":         {known, 49, 1, false},
		"less than that, and nothing known": {Rates{}, 49, 1, false},
		"nothing is known":                  {Rates{}, 550, 1e12, true},
		"no speed is known, so it is tried": {Rates{Prompt: time.Microsecond}, 50_000, 1e12, true},
		"no size is known, so it is tried":  {Rates{Prompt: time.Microsecond, Restore: known.Restore}, 50_000, 0, true},
		"as slow as a save":                 {Rates{Save: before(0, 1e8)}, 549, 40e6, false},
		"as fast as a save":                 {Rates{Save: before(0, 1e8)}, 550, 40e6, true},
		"what a save took counts no more":   {Rates{Save: before(0, 1e8), Restore: before(0, 1e12)}, 549, 40e6, true},
		"nor if it was faster":              {Rates{Save: before(0, 1e12), Restore: before(0, 1e8)}, 549, 40e6, false},
		"a GPU, restored from memory":       {Rates{Prompt: 102 * time.Microsecond, Restore: before(0, 2e9)}, 11_914, 1_562_176_516, true},
		"a GPU, restored from a slow disk":  {Rates{Prompt: 102 * time.Microsecond, Restore: before(0, 5e8)}, 11_914, 1_562_176_516, false},
		"later, a slow restore counts less": {Rates{Restore: before(slowCounts+1, 1e6)}, 550, 200e6, true}, // as fast as a plain disk
		"but still":                         {Rates{Restore: before(slowCounts+1, 1e6)}, 549, 200e6, false},
		"until then, it counts":             {Rates{Restore: before(slowCounts, 1e6)}, 550, 200e6, false},
		"later, a fast one counts as much":  {Rates{Restore: before(hour, 1e12)}, 550, 200e9, true},
		"old measurements count no more":    {Rates{Restore: before(long, 1), Save: before(long, 1)}, 550, 1e12, true},
		"a save is newer":                   {Rates{Restore: before(long, 1e12), Save: before(hour, 1e6)}, 550, 40e6, false},
		"it takes for ever":                 {Rates{Restore: before(0, 1e-9)}, 550, 1 << 60, false},
	} {
		tt.rates.now = noon
		if got := tt.rates.Balance(tt.tokens, tt.bytes); got.Pays() != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRates_PaysFrom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rates Rates
		from  int
		known bool
	}{
		"some tokens":             {Rates{Prompt: time.Millisecond, Bytes: 40e3, Restore: before(0, 1e8)}, 100, true},
		"never":                   {Rates{Prompt: time.Millisecond, Bytes: 80e3, Restore: before(0, 1e8)}, 0, true},
		"by the speed of a save":  {Rates{Prompt: time.Millisecond, Bytes: 40e3, Save: before(0, 1e8)}, 100, true},
		"no time is known":        {Rates{Bytes: 40e3, Restore: before(0, 1e8)}, 0, false},
		"no size is known":        {Rates{Prompt: time.Millisecond, Restore: before(0, 1e8)}, 0, false},
		"no speed is known":       {Rates{Prompt: time.Millisecond, Bytes: 40e3}, 0, false},
		"what is known is no old": {Rates{Prompt: time.Millisecond, Bytes: 40e3, Restore: before(long, 1e8)}, 0, false},
	} {
		tt.rates.now = noon
		from, known := tt.rates.PaysFrom()
		if from != tt.from || known != tt.known {
			t.Errorf("%s: %d, %t", name, from, known)
		}
		if !known || from == 0 {
			continue
		}
		size := func(tokens int) int64 { return tt.rates.Size(tokens) }
		if !tt.rates.Balance(from+1, size(from+1)).Pays() || tt.rates.Balance(from-1, size(from-1)).Pays() {
			t.Errorf("%s: it doesn't pay from %d tokens on", name, from)
		}
	}
}

func TestRates_Saving(t *testing.T) {
	t.Parallel()
	r := Rates{Bytes: 1000, Save: before(hour, 1e6), now: noon}
	if got := r.Saving(500); got != time.Second/2 {
		t.Errorf("it takes %v", got)
	}
	r.Save = before(long, 1e6)
	if got := r.Saving(500); got != 0 {
		t.Errorf("it takes %v, by what was measured long ago", got)
	}
	if got := r.Processing(500); got != 500*time.Millisecond {
		t.Errorf("processing takes %v", got)
	}
	if got := r.Processing(1 << 40); got < 0 || got > most {
		t.Errorf("processing takes %v", got)
	}
}
