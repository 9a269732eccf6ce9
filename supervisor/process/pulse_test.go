package process

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// patient is a pulse over an engine whose answers the test chooses.
type patient struct {
	*pulse
	t      *testing.T
	slots  func(context.Context) (string, error)
	health error
	asked  int
	from   time.Time

	telling   sync.Mutex
	condemned string
	at        time.Duration // when it was condemned
}

// during has a test watch a pulse in a bubble.
func during(t *testing.T, test func(p *patient)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := &patient{from: time.Now()}
		p.slots = func(context.Context) (string, error) { return idleSlots, nil }
		p.pulse = &pulse{
			engine: LlamaServer(nil), batch: 2048, stall: func() time.Duration { return 5 * time.Minute }, ctx: ctx,
			condemn: func(reason string) {
				p.telling.Lock()
				p.condemned, p.at = reason, time.Since(p.from)
				p.telling.Unlock()
				cancel()
			},
			ask:   p.answer,
			usage: func(context.Context) child.Usage { return child.Usage{} },
		}
		p.t = t
		test(p)
	})
}

func (p *patient) answer(ctx context.Context, path string) (*http.Response, error) {
	said, err := "{}", p.health
	if path == "/slots" {
		p.asked++
		said, err = p.slots(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(said))}, nil
}

const (
	idleSlots = `[{"id":0,"is_processing":false},{"id":1,"is_processing":false}]`
	// decoding is a slot amid its answer, reading one amid the batch from 512 to 2560.
	decoding = `[{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens":9,"n_prompt_tokens_processed":9,"next_token":[{"n_decoded":4}]}]`
	reading  = `[{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens":2560,"n_prompt_tokens_processed":512,"next_token":[{"n_decoded":0}]}]`
)

func (p *patient) stuckAt(slots string) {
	p.slots = func(context.Context) (string, error) { return slots, nil }
}

// silence waits for bytes until the engine is condemned, or so long.
func (p *patient) silence(d time.Duration) {
	select {
	case <-p.ctx.Done():
	case <-time.After(d):
	}
	synctest.Wait()
}

// gives up checks when the engine was condemned.
func (p *patient) gaveUp(after time.Duration, reason string) {
	p.t.Helper()
	p.telling.Lock()
	defer p.telling.Unlock()
	if !strings.Contains(p.condemned, reason) || p.condemned == "" || p.at < after || p.at > after+probeEvery+2*probeTimeout {
		p.t.Errorf("condemned at %v: %q; want it soon after %v: %q", p.at, p.condemned, after, reason)
	}
}

func (p *patient) lives() {
	p.t.Helper()
	p.telling.Lock()
	defer p.telling.Unlock()
	if p.condemned != "" {
		p.t.Errorf("condemned at %v: %s", p.at, p.condemned)
	}
}

// told is a chunk that tells a pace.
func told(tokens, ms string) []byte {
	return []byte(`data: {"prompt_progress":{"total":9000,"cache":0,"processed":` + tokens + `,"time_ms":` + ms + "}}\n\n")
}

func TestPulse_AHangIsSeenSoon(t *testing.T) {
	for name, tt := range map[string]struct {
		slots func(context.Context) (string, error)
		after time.Duration
		why   string
	}{
		"amid an answer":          {func(context.Context) (string, error) { return decoding, nil }, leastPatience, "made no progress for 30s"},
		"before it reads":         {func(context.Context) (string, error) { return strings.Replace(reading, "2560", "512", 1), nil }, leastPatience, "made no progress"},
		"no connection":           {func(context.Context) (string, error) { return "", syscall.ECONNREFUSED }, 0, reasonRefuses},
		"a batch at unknown pace": {func(context.Context) (string, error) { return reading, nil }, 5 * time.Minute, "made no progress"},
		"without a list of slots": {func(context.Context) (string, error) { return "no JSON", nil }, 5 * time.Minute, "made no progress"},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.slots = tt.slots
				p.begin(p.t.Context(), 1, 1<<20)
				p.silence(time.Hour)
				p.gaveUp(tt.after, tt.why)
			})
		})
	}
}

func TestPulse_AFrozenProcessIsSeenSoonWhateverItDid(t *testing.T) {
	during(t, func(p *patient) {
		p.slots = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		p.health = context.DeadlineExceeded
		p.slow = true
		p.begin(p.t.Context(), 1, 1<<20)
		p.silence(time.Hour)
		p.gaveUp(leastPatience, "made no progress")
	})
}

// Four long prompts, one after the other: each request hears nothing for many minutes, but the engine gets on.
func TestPulse_SlowIsNotHung(t *testing.T) {
	for name, silent := range map[string]bool{"one speaks": false, "only the slots tell": true} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				var done atomic.Int32
				p.slots = func(context.Context) (string, error) {
					one := strings.Trim(strings.Replace(reading, "512", strconv.Itoa(int(done.Load()%10))+"12", 1), "[]")
					return "[" + strings.Join([]string{one, one, one, one}, ",") + "]", nil
				}
				var all []*exchange
				for range 4 {
					all = append(all, p.begin(p.t.Context(), 1, 1<<20))
				}
				for range 4 * 17 { // batches of 40 s
					p.silence(40 * time.Second)
					done.Add(1)
					if !silent {
						all[0].got(told("512", "40000"), nil)
						all[0].wait()
					}
				}
				p.lives()
			})
		})
	}
}

func TestPulse_TheLimitFollowsThePace(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(reading) // 2048 tokens
		x := p.begin(p.t.Context(), 1, 1<<20)
		x.got(told("0", "0"), nil)
		x.wait()
		time.Sleep(2 * time.Second)
		x.got(told("512", "2048"), nil) // 4 ms for a token: 8 s for the batch
		x.wait()
		p.silence(time.Hour)
		p.gaveUp(2*time.Second+10*2048*4*time.Millisecond, "made no progress")
	})
}

// Comments come from another thread than what hangs.
func TestPulse_CommentsAreNoProgress(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(decoding)
		x := p.begin(p.t.Context(), 1, 1<<20)
		for range 20 {
			p.silence(4 * time.Second)
			x.got([]byte(":\n\n"), nil)
			x.wait()
		}
		p.gaveUp(leastPatience, "made no progress")
	})
}

func TestPulse_ASlowClientIsNotTheEnginesFault(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(decoding)
		x := p.begin(p.t.Context(), 1, 1<<20)
		x.got([]byte("data: {}\n\n"), nil)
		p.silence(time.Hour)
		p.lives()
		if p.asked > 0 {
			t.Errorf("asked %d times while nobody waited", p.asked)
		}
		x.wait() // the hour isn't the engine's
		p.silence(leastPatience / 2)
		p.lives()
	})
}

func TestPulse_WhoSpeaksIsNotAsked(t *testing.T) {
	during(t, func(p *patient) {
		x := p.begin(p.t.Context(), 1, 1<<20)
		for range 100 {
			time.Sleep(time.Second)
			x.got([]byte("data: {}\n\n"), nil)
			x.wait()
		}
		if p.asked > 0 {
			t.Errorf("asked %d times", p.asked)
		}
	})
}

func TestPulse_AfterAClientLeft(t *testing.T) {
	for name, tt := range map[string]struct {
		slots string
		dies  bool
	}{
		"the engine is idle":                         {idleSlots, false},
		"the engine goes on with nobody's request":   {decoding, true},
		"the engine hangs before it reads a request": {strings.Replace(reading, "2560", "512", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.stuckAt(tt.slots)
				ctx, leave := context.WithCancel(p.t.Context())
				x := p.begin(ctx, 1, 1<<20)
				time.Sleep(3 * time.Second)
				leave()
				x.got(nil, ctx.Err())
				x.end()
				p.silence(time.Hour)
				if !tt.dies {
					p.lives()
					if p.asked != 1 {
						t.Errorf("an idle engine was asked %d times", p.asked)
					}
					return
				}
				p.gaveUp(leastPatienceLeft, "made no progress")
			})
		})
	}
}

// A client that keeps reconnecting must not hide that its request has hung the engine.
func TestPulse_LeavingAgainAndAgainDoesNotHideAHang(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(decoding)
		for p.ctx.Err() == nil && time.Since(p.from) < time.Hour {
			ctx, leave := context.WithCancel(p.t.Context())
			x := p.begin(ctx, 1, 1<<20)
			p.silence(time.Second)
			leave()
			x.got(nil, ctx.Err())
			x.end()
		}
		p.gaveUp(leastPatienceLeft, "made no progress")
	})
}

// A request may hang before the loop has it, while the loop serves others.
func TestPulse_StuckOutsideTheLoop(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(decoding) // one slot is busy
		p.begin(p.t.Context(), 1, 1<<20)
		other := p.begin(p.t.Context(), 2, 1<<20)
		for p.ctx.Err() == nil && time.Since(p.from) < time.Hour {
			p.silence(time.Second)
			other.got([]byte("data: {}\n\n"), nil)
			other.wait()
		}
		p.gaveUp(5*time.Minute+probeEvery, "before it reached the model")
	})
}

func TestPulse_WhoMayBeTheReason(t *testing.T) {
	broke := errors.New("connection reset")
	for name, tt := range map[string]struct {
		play func(p *patient, mine *exchange)
		want bool
	}{
		"nobody else": {func(*patient, *exchange) {}, true},
		"another": {func(p *patient, _ *exchange) {
			other := p.begin(p.t.Context(), 2, 1<<20)
			other.got(nil, broke)
			other.end()
		}, false},
		"another that was answered": {func(p *patient, _ *exchange) {
			other := p.begin(p.t.Context(), 2, 1<<20)
			other.got(nil, io.EOF)
			other.end()
		}, true},
		"another that has just left": {func(p *patient, _ *exchange) { p.begin(p.t.Context(), 2, 1<<20).end() }, false},
		"another, that was not answered at all": {func(p *patient, _ *exchange) {
			other := p.begin(p.t.Context(), 2, 1<<20)
			other.failed()
			other.end()
		}, false},
		"another choice of the same request, that was ended with it": {func(p *patient, _ *exchange) {
			p.begin(p.t.Context(), 1, 1<<20).end()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				mine := p.begin(p.t.Context(), 1, 1<<20)
				mine.got(nil, broke)
				tt.play(p, mine)
				mine.end()
				if got := p.isAlone(1); got != tt.want {
					t.Errorf("alone: %t, want %t", got, tt.want)
				}
			})
		})
	}
}

func TestPulse_Patience(t *testing.T) {
	t.Parallel()
	work := func(tokens int) activity { return activity{known: true, work: Work{Busy: 1, Tokens: tokens}} }
	for name, tt := range map[string]struct {
		pulse *pulse
		seen  activity
		want  time.Duration
	}{
		"nothing is known":                      {&pulse{batch: 2048}, activity{}, 5 * time.Minute},
		"it answers nothing":                    {&pulse{batch: 2048}, activity{frozen: true}, 30 * time.Second},
		"it answers nothing, a client left":     {&pulse{batch: 2048, left: true}, activity{frozen: true}, 10 * time.Second},
		"it generates":                          {&pulse{batch: 2048}, work(0), 30 * time.Second},
		"it generates, a client left":           {&pulse{batch: 2048, left: true}, work(0), 10 * time.Second},
		"a short prompt":                        {&pulse{batch: 2048}, work(40), 30 * time.Second},
		"a short prompt, a client left":         {&pulse{batch: 2048, left: true}, work(40), 10 * time.Second},
		"a prompt of no known pace":             {&pulse{batch: 2048}, work(400), 100 * time.Second},
		"a batch of no known pace":              {&pulse{batch: 2048}, work(9000), 5 * time.Minute},
		"a batch at a known pace":               {&pulse{batch: 512, token: 10 * time.Millisecond}, work(9000), 51200 * time.Millisecond},
		"a quick pace":                          {&pulse{batch: 512, token: 10 * time.Microsecond}, work(9000), 30 * time.Second},
		"it was slow before":                    {&pulse{batch: 512, token: 10 * time.Microsecond, slowest: 6 * time.Second}, work(0), time.Minute},
		"images, whose time can't be told":      {&pulse{batch: 512, token: 10 * time.Microsecond, slow: true}, work(40), 5 * time.Minute},
		"only its loop tells, of short prompts": {&pulse{batch: 2048, token: 40 * time.Millisecond, left: true, leftTokens: -1<<20 + 500}, activity{pending: true}, 200 * time.Second},
		"only its loop tells, which doesn't":    {&pulse{batch: 512, token: 10 * time.Microsecond}, activity{pending: true}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := tt.pulse
			u.exchanges = map[*exchange]struct{}{{tokens: 1 << 20}: {}}
			u.stall = func() time.Duration { return 5 * time.Minute }
			if got := u.patience(tt.seen); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
