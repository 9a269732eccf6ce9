package bench

import (
	"cmp"
	"time"
)

// target is one path to the engine.
type target struct {
	name    string
	what    string // in words
	address string
	path    string // of its endpoint; empty: chatPath
	token   string // that it requires; empty: none
	pid     int    // of the proxy; 0: there is none
	admin   string // the socket of its admin API; empty: it has none
	gathers bool   // the client requests an answer in one piece
}

// The targets' names.
const (
	direct    = "direct"
	floor     = "floor"
	caddy     = "caddy"
	llamaSwap = "llama-swap"
	olla      = "olla"
	ours      = "lmcaddy"
	oneBody   = "lmcaddy, one body"
)

// chatPath is the endpoint that is measured.
const chatPath = "/v1/chat/completions"

// olderName is the name of a target of ours as the lmcaddy of -before is it.
func olderName(name string) string { return name + ", old" }

func (t target) endpoint() string { return cmp.Or(t.path, chatPath) }

func (t target) cpu() (time.Duration, error) {
	if t.pid == 0 {
		return 0, nil
	}
	return cpuTime(t.pid)
}

func (t target) resident() (int64, error) {
	if t.pid == 0 {
		return 0, nil
	}
	return residentMemory(t.pid)
}
