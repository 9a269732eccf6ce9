package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// pollAfter is how long an engine has to begin to tell its state before it is asked.
	pollAfter = 500 * time.Millisecond
	// pollEvery is how often it is asked then. It answers while it is loading, too, so this costs next to nothing.
	pollEvery = 100 * time.Millisecond
)

// poll asks an engine that doesn't tell its state whether it is ready.
func (p *process) poll(ctx context.Context, path string, l Launch) {
	wait := time.NewTimer(pollAfter)
	defer wait.Stop()
	url := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port)) + path
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
		if isHealthy(ctx, url, l.APIKey) {
			p.becomeReady()
			return
		}
		wait.Reset(pollEvery)
	}
}

// pollClient has connections of its own: an idle one would keep an engine from ending.
var pollClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

func isHealthy(ctx context.Context, url, apiKey string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := pollClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// freePort finds a port that nobody listens on. Another program may still take it before the engine does; then the
// engine says so, and another is tried.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the engine: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
