package supervisor

import (
	"context"
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
func (p *process) poll(ctx context.Context, path string) {
	wait := time.NewTimer(pollAfter)
	defer wait.Stop()
	// Without keep-alives: an idle connection would delay the engine's exit.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dial}, Timeout: 5 * time.Second}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.loading.ready:
			return
		case <-wait.C:
		}
		if p.loading.tells.Load() {
			return
		}
		if isHealthy(ctx, client, engineURL(path)) {
			p.becomeReady()
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
