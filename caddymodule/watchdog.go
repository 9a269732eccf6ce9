package caddymodule

import (
	"net"
	"os"
	"strconv"
	"time"
)

// FeedWatchdog tells systemd again and again that the process works, if its unit has WatchdogSec; else it does nothing. Works
// means: the scheduler of each open node answers. If one hangs, systemd ends the process and starts it again. Main calls it once,
// in a process that serves. (Caddy itself tells systemd when it is ready, reloads and stops, but feeds no watchdog.)
func FeedWatchdog() {
	every, ok := watchdogPeriod(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), os.Getpid())
	socket := os.Getenv("NOTIFY_SOCKET")
	if !ok || socket == "" {
		return
	}
	go watch(time.Tick(every), answers, func() { // as sd_notify does; systemd learns from its absence that something is wrong
		if conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"}); err == nil {
			_, _ = conn.Write([]byte("WATCHDOG=1"))
			_ = conn.Close()
		}
	})
}

// watchdogPeriod returns how often to tell systemd: three times in the time after which it loses patience.
func watchdogPeriod(microseconds, pid string, own int) (time.Duration, bool) {
	n, err := strconv.ParseInt(microseconds, 10, 64)
	if err != nil || n < 1000 || n > 1e15 || pid != "" && pid != strconv.Itoa(own) {
		return 0, false
	}
	return time.Duration(n) * time.Microsecond / 3, true
}

// watch calls works at each tick, and then feed. A call of works that never returns doesn't keep later ones from being made.
func watch(ticks <-chan time.Time, works, feed func()) {
	for range ticks {
		go func() {
			works()
			feed()
		}()
	}
}

// answers returns when the schedulers of all open nodes have answered.
func answers() {
	nodes.Range(func(_, value any) bool {
		value.(*pooled).Overview()
		return true
	})
}
