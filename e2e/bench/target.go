package bench

import "time"

// target is one path to the engine.
type target struct {
	name    string
	what    string // in words
	address string
	token   string // that it requires; empty: none
	pid     int    // of the proxy; 0: there is none
	gathers bool   // the client requests an answer in one piece
}

// The targets' names.
const (
	direct  = "direct"
	floor   = "floor"
	caddy   = "caddy"
	ours    = "lmcaddy"
	oneBody = "lmcaddy, one body"
)

// olderName is the name of a target of ours as the lmcaddy of -before is it.
func olderName(name string) string { return name + ", old" }

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
