package doctor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/gofrs/flock"

	"github.com/lmcaddy/lmcaddy/caddymodule"
)

// checkServer checks whether a server runs on the home, and answers.
func checkServer(ctx context.Context, s *Subject) (found findings) {
	if s.Server != nil {
		var p caddymodule.Process
		if err := s.Server.Get(ctx, caddymodule.StatusPath, &p); err != nil {
			return found.problem(`See "lmcaddy log", and restart it.`,
				"A server runs on the home, and doesn't answer as it should: %v.", err)
		}
		return found.ok("lmcaddy %s runs as process %d, and serves on %s.", p.Version, p.PID,
			cmp.Or(strings.Join(p.Addresses, ", "), "nothing but its socket"))
	}
	held, err := isLocked(s.Home.Lock())
	switch {
	case err != nil:
		found.warn("See who owns the file.", "Whether a server runs on the home isn't known: %v.", err)
	case s.IsSilent && !held:
		found.problem("End that program, and delete the socket.", "Something accepts connections on %s and doesn't answer, "+
			"and it isn't an lmcaddy that has the home in use.", s.Home.Socket())
	case held:
		pid, _ := os.ReadFile(s.Home.Lock())
		found.problem("It may be starting or ending: wait a moment. If this lasts, end that process, and start the server again.",
			"Process %s has the home in use, and doesn't answer on its socket.", strings.TrimSpace(string(pid)))
	default:
		found.ok(`No server is running: "lmcaddy run" or "lmcaddy serve" starts one.`)
	}
	return found
}

// isLocked reports whether another process holds a lock. It makes no file.
func isLocked(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	got, err := lock.TryLock()
	if err != nil || !got {
		return !got, err
	}
	return false, lock.Unlock()
}
