package supervisor

import (
	"context"
	"net/http"
	"time"
)

const (
	// pollAfter is how long an engine has to begin to tell its state before it is asked.
	pollAfter = 500 * time.Millisecond
	// pollEvery is how often it is asked then. It answers while it is loading, too, so this costs next to nothing.
	pollEvery = 100 * time.Millisecond
)

// poll asks an engine that doesn't tell its state whether it is ready.
func (p *process) poll(ctx context.Context, path string) {
	wait := time.NewTimer(pollAfter)
	defer wait.Stop()
	// It has connections of its own: an idle one would keep an engine from ending.
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

// isHealthy asks without the key: while the engine is loading, its port may still be another program's.
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
