package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// maxChatter is how many times the stall time an engine may keep writing or computing without progress: its threads may wait by computing.
const maxChatter = 10

// leastLateness is by how much a timer fires late at least if this process stood still: the machine was suspended, or a container
// paused, or too many others were on its processors.
const leastLateness = time.Second

// loading tracks the progress of a load. A load has no deadline, since a large model on a slow disk takes long; it fails when
// it makes no progress. Any output counts as progress, too, but not forever.
type loading struct {
	listening chan struct{} // closed when the engine has said that it listens
	listens   sync.Once
	reports   atomic.Bool // the engine reports its state by itself

	mu       sync.Mutex
	stall    func() time.Duration
	timer    *time.Timer // fires when the load stalls; nil: it hasn't begun
	due      time.Time   // when the timer fires
	moved    time.Time   // when it last made progress other than output
	progress float64
	said     [schedule.SignalDead + 1]bool // kinds of signals that were reported
}

// begin starts the timer that calls stalled when the load makes no progress.
func (o *loading) begin(stall func() time.Duration, stalled func(why string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall, o.moved = stall, time.Now()
	o.due = o.moved.Add(o.stall())
	o.timer = time.AfterFunc(o.stall(), func() {
		if !o.discountsPause(time.Now()) {
			stalled(o.stallReason())
		}
	})
}

// discountsPause reports whether the timer is late, and gives the load the time for which this process stood still.
func (o *loading) discountsPause(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := now.Sub(o.due)
	if late < leastLateness {
		return false
	}
	o.moved = o.moved.Add(late)
	o.wait(now, min(late, o.stall()))
	return true
}

// wait sets the timer. The caller holds o.mu.
func (o *loading) wait(now time.Time, d time.Duration) {
	o.due = now.Add(d)
	o.timer.Reset(d)
}

func (o *loading) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer.Stop()
}

func (o *loading) stallReason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	stall := o.stall()
	if time.Since(o.moved) > maxChatter*stall {
		return fmt.Sprintf("the engine made no progress for %s while it was loading, though it kept writing or computing",
			time.Since(o.moved).Round(time.Second))
	}
	return fmt.Sprintf("the engine wrote nothing for %s while it was loading", stall)
}

// heard records that the engine has written something, or computed.
func (o *loading) heard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stall := o.stall(); time.Since(o.moved) <= maxChatter*stall {
		o.wait(time.Now(), stall)
	}
}

// advanced records progress of an engine that doesn't report any.
func (o *loading) advanced() {
	o.mu.Lock()
	o.moved = time.Now()
	o.mu.Unlock()
	o.heard()
}

func (o *loading) knowsTrouble() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said[schedule.SignalTrouble]
}

func (o *loading) isNews(sig schedule.Signal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch sig.Kind {
	case schedule.SignalProgress:
		o.reports.Store(true)
		isFirst := !o.said[sig.Kind]
		o.said[sig.Kind] = true
		if sig.Progress <= o.progress {
			return isFirst
		}
		o.progress = sig.Progress
	case schedule.SignalListening:
		o.listens.Do(func() { close(o.listening) })
		return false
	case schedule.SignalTrouble, schedule.SignalPortTaken, schedule.SignalOutOfMemory, schedule.SignalNoDevice, schedule.SignalReduced:
		wasSaid := o.said[sig.Kind]
		o.said[sig.Kind] = true
		return !wasSaid
	case schedule.SignalBuffer, schedule.SignalFlashAttention, schedule.SignalLayers:
	default:
		return false
	}
	o.moved = time.Now()
	return true
}

const (
	// pollAfter is how long an engine has to report its state before it is polled.
	pollAfter = 500 * time.Millisecond
	// pollEvery is the interval of the polls. An engine answers while it is loading, too, so this is cheap.
	pollEvery     = 100 * time.Millisecond
	healthTimeout = 5 * time.Second
)

// poll calls done after a time, and then again and again, until that returns true or soon is closed. It returns false if the load has
// ended before.
func (p *Process) poll(ctx context.Context, soon <-chan struct{}, after, every time.Duration, done func() bool) bool {
	wait := time.NewTimer(after)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.life.ready:
			return false
		case <-soon:
			return true
		case <-wait.C:
		}
		if done() {
			return true
		}
		wait.Reset(every)
	}
}

// awaitHealth polls the health of an engine that doesn't report its state.
func (p *Process) awaitHealth(ctx context.Context, path string) {
	client := p.loadClient()
	client.Timeout = healthTimeout
	p.poll(ctx, nil, pollAfter, pollEvery, func() bool {
		if p.loading.reports.Load() {
			return true
		}
		status, _, err := send(ctx, client, http.MethodGet, path, nil)
		isHealthy := err == nil && status == http.StatusOK
		if isHealthy {
			p.loaded(byHealth)
		}
		return isHealthy
	})
}

const (
	// tryAfter is how long an engine has to say that it listens before it is tried all the same.
	tryAfter = 10 * time.Second
	// tryEvery is the pause after a trial that got no answer.
	tryEvery = 100 * time.Millisecond
	// askEvery is the interval at which the system is asked whether an engine listens that doesn't say so.
	askEvery = time.Second
	// maxTrial bounds the answer that is read, in bytes.
	maxTrial = 1 << 20
)

// awaitTrial sends an engine the request of a Trier until it is answered, and ends the load accordingly. It has no deadline, since its
// answer comes when the model is loaded. If the engine doesn't say that it listens, the system is asked: another program may have its port.
func (p *Process) awaitTrial(ctx context.Context, trier Trier) {
	isListening := p.poll(ctx, p.loading.listening, tryAfter, askEvery, func() bool {
		l := p.launched.Load()
		return l.socket != "" || l.group.Listens(ctx, l.PID, l.port)
	})
	if !isListening {
		return
	}
	client := p.loadClient()
	path, body := trier.Trial()
	p.poll(ctx, nil, 0, tryEvery, func() bool {
		status, answer, err := send(ctx, client, http.MethodPost, path, body)
		if err != nil {
			return false
		}
		if err = trier.Tried(status, answer); err != nil {
			p.failLoad(byTrial, err.Error())
		} else {
			p.loaded(byTrial)
		}
		return true
	})
}

// send sends no key: while the engine is loading, its port may still belong to another program, and one that has to be tried has no key.
func send(ctx context.Context, client *http.Client, method, path string, body []byte) (status int, answer []byte, _ error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+engineHost+path, bytes.NewReader(body)) // dial knows where that is
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp, maxTrial)
}

// compiling is the first use of an engine's code on a GPU for a kind of model. Drivers compile it then, which takes up to a minute,
// and keep the result in a cache. Without a request of our own, the first one of a client would wait for that.
type compiling struct {
	mark string // the file that says that it was done
	path string
	body []byte
}

// toCompile returns what has to be compiled for a launch; nil: nothing, or it was done before.
func (p *Process) toCompile(l *Launch, b Build) *compiling {
	compiler, ok := p.program.(Compiler)
	if !ok || len(l.On.Devices) == 0 || p.host.Cache == "" {
		return nil
	}
	c := &compiling{}
	if c.path, c.body = compiler.Compile(l); c.path == "" {
		return nil
	}
	var titles []string
	for _, d := range b.Devices {
		titles = append(titles, d.Title)
	}
	kind := fmt.Sprintf("%q %q %q %q %d %q",
		b.Version, l.Model.Architecture, l.Model.Quantization.Name, l.Engine, l.FlashAttention, titles)
	c.mark = filepath.Join(p.host.Cache, "compiled", fmt.Sprintf("%x", sha256.Sum256([]byte(kind)))[:16])
	if _, err := os.Stat(c.mark); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c
}

// compile has the engine's code compiled. If that fails, so will a request, which is then told why.
func (p *Process) compile(c *compiling) {
	p.log.Info("the engine is used on this GPU for a model of this kind for the first time: " +
		"if its code has to be compiled for it, that takes up to a minute, once")
	if status, _, err := p.askOnce(p.ctx, c.path, [][]byte{c.body}); err != nil || status != http.StatusOK {
		p.log.Debug("the first use on a GPU", "status", status, "error", err)
		return
	}
	if err := os.MkdirAll(filepath.Dir(c.mark), 0o700); err == nil {
		err = os.WriteFile(c.mark, nil, 0o600)
		p.log.Debug("the engine's code is compiled", "error", err)
	}
}

// ringLines is how many lines of an engine's output are kept.
const ringLines = 200

// logRing holds the last lines of an engine's output.
type logRing struct {
	mu    sync.Mutex
	lines []string
}

func (r *logRing) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-ringLines):]
}

func (r *logRing) contains(pattern *regexp.Regexp) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, pattern.MatchString)
}

// last returns the newest n lines joined into one; empty if there are none.
func (r *logRing) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, line := range r.lines[max(0, len(r.lines)-n):] {
		words = append(words, strings.TrimSpace(line))
	}
	return strings.Join(words, " | ")
}
