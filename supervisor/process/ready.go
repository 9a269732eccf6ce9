package process

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

const (
	// pollAfter is how long an engine has to report its state before it is polled.
	pollAfter = 500 * time.Millisecond
	// pollEvery is the interval of the polls. An engine answers while it is loading, too, so this is cheap.
	pollEvery = 100 * time.Millisecond
)

// poll polls the health of an engine that doesn't report its state.
func (p *Process) poll(ctx context.Context, path string) {
	wait := time.NewTimer(pollAfter)
	defer wait.Stop()
	// Without keep-alives: an idle connection would delay the engine's exit.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dial}, Timeout: 5 * time.Second}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.life.ready:
			return
		case <-wait.C:
		}
		if p.loading.tells.Load() {
			return
		}
		if isHealthy(ctx, client, engineURL(path)) {
			p.loaded(byHealth)
			return
		}
		wait.Reset(pollEvery)
	}
}

// isHealthy sends no key: while the engine is loading, the port may still belong to another program.
func isHealthy(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
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

// try sends an engine the requests of a Trier until one is answered, and ends the load accordingly. A request has no deadline,
// since its answer comes when the model is loaded.
func (p *Process) try(ctx context.Context, trier Trier) {
	if !p.listens(ctx) {
		return
	}
	wait := time.NewTimer(0)
	defer wait.Stop()
	// Without keep-alives: an idle connection would delay the engine's exit.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dial}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		status, answer, err := post(ctx, client, trier)
		if err == nil {
			if err = trier.Tried(status, answer); err == nil {
				p.loaded(byTrial)
			} else {
				p.failLoad(byTrial, err.Error())
			}
			return
		}
		wait.Reset(tryEvery)
	}
}

// listens waits until the engine listens, and returns false if the load has ended before. If the engine doesn't say so, the system is
// asked: another program may have its port.
func (p *Process) listens(ctx context.Context) bool {
	wait := time.NewTimer(tryAfter)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.loading.listening:
			return true
		case <-wait.C:
		}
		l := p.launched.Load()
		if l.socket != "" || l.group.Listens(ctx, l.PID, l.port) {
			return true
		}
		wait.Reset(askEvery)
	}
}

// post sends no key: an engine that has to be tried has none.
func post(ctx context.Context, client *http.Client, trier Trier) (status int, answer []byte, _ error) {
	path, body := trier.Trial()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, engineURL(path), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxTrial))
	return resp.StatusCode, answer, err
}
