package process

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// begun is a load that has begun, and the stallReason about it once there is one.
func begun(stall time.Duration) (*loading, chan string) {
	complaints := make(chan string, 1)
	o := &loading{listening: make(chan struct{})}
	o.begin(func() time.Duration { return stall }, func(why string) { complaints <- why })
	return o, complaints
}

func TestLoading_SilenceIsAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, complaints := begun(time.Minute)
		defer o.end()
		for range 5 {
			time.Sleep(59 * time.Second)
			o.heard()
		}
		began := time.Now()
		if why := <-complaints; why != "the engine wrote nothing for 1m0s while it was loading" {
			t.Errorf("stallReason %q", why)
		}
		if after := time.Since(began); after != time.Minute {
			t.Errorf("after %v, want a minute", after)
		}
	})
}

func TestLoading_WordsAloneAreNotProgressForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, complaints := begun(time.Minute)
		defer o.end()
		began := time.Now()
		time.Sleep(30 * time.Second)
		o.isNews(schedule.Signal{Kind: schedule.SignalProgress, Progress: 0.5})
		for {
			o.heard()
			o.isNews(schedule.Signal{Kind: schedule.SignalProgress, Progress: 0.5}) // no further than before
			select {
			case why := <-complaints:
				if why != "the engine made no progress for 11m0s while it was loading, though it kept writing or computing" {
					t.Errorf("stallReason %q", why)
				}
				if after := time.Since(began); after < maxChatter*time.Minute || after > (maxChatter+2)*time.Minute {
					t.Errorf("after %v", after)
				}
				return
			case <-time.After(30 * time.Second):
			}
		}
	})
}

func TestLoading_ProgressGoesOnForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, complaints := begun(time.Minute)
		defer o.end()
		for n := range 100 {
			time.Sleep(50 * time.Second)
			o.heard()
			o.isNews(schedule.Signal{Kind: schedule.SignalProgress, Progress: float64(n+1) / 100})
		}
		select {
		case why := <-complaints:
			t.Error(why)
		default:
		}
	})
}

func TestLoading_OnlyNewsIsTold(t *testing.T) {
	t.Parallel()
	o, _ := begun(time.Hour)
	defer o.end()
	for _, c := range []struct {
		sig  schedule.Signal
		want bool
	}{
		{schedule.Signal{}, false}, // of the protocol, and of no use
		{schedule.Signal{Kind: schedule.SignalProgress}, true},
		{schedule.Signal{Kind: schedule.SignalProgress}, false},
		{schedule.Signal{Kind: schedule.SignalProgress, Progress: 0.5}, true},
		{schedule.Signal{Kind: schedule.SignalProgress, Progress: 0.4}, false},
		{schedule.Signal{Kind: schedule.SignalTrouble, Text: "first"}, true},
		{schedule.Signal{Kind: schedule.SignalTrouble, Text: "second"}, false},
		{schedule.Signal{Kind: schedule.SignalOutOfMemory}, true},
		{schedule.Signal{Kind: schedule.SignalOutOfMemory}, false},
		{schedule.Signal{Kind: schedule.SignalPortTaken}, true},
		{schedule.Signal{Kind: schedule.SignalBuffer, Bytes: 1}, true},
		{schedule.Signal{Kind: schedule.SignalBuffer, Bytes: 1}, true}, // another buffer of the same size
		{schedule.Signal{Kind: schedule.SignalFlashAttention, Toggle: schedule.On}, true},
	} {
		if got := o.isNews(c.sig); got != c.want {
			t.Errorf("%+v: news %t, want %t", c.sig, got, c.want)
		}
	}
}
