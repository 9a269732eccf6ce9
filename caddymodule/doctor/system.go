package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// checkSandbox checks that engines run in a sandbox.
func checkSandbox(_ context.Context, s *Subject) []Finding {
	if s.configured(node.BuiltIn()[0].Name, "sandbox") == "off" {
		return one(Warning, "Engines run without a sandbox: the configuration says sandbox off.",
			"Leave that out, unless an engine doesn't work in it.")
	}
	return ofSandbox(process.SandboxState())
}

func ofSandbox(state string) []Finding {
	if strings.HasPrefix(state, "not available") {
		return one(Warning, fmt.Sprintf("Engines run without a sandbox: it is %s.", state),
			"On Linux it needs a kernel with Landlock (5.13 or later, with landlock among its security modules).")
	}
	return ok("Engines run in a sandbox (%s).", state)
}

// enoughFiles is how many files a server with many clients has open.
const enoughFiles = 4096

// ofLimits is about the most files that a process may open, and the most memory that it may take, in bytes. 0 is unlimited.
func ofLimits(files, memory uint64) (found []Finding) {
	if files > 0 && files < enoughFiles {
		found = append(found, one(Warning, fmt.Sprintf("A process may open only %d files, and each client, engine and model takes some.",
			files), "Raise the limit: LimitNOFILE in the systemd unit, or ulimit -n in the shell that starts the server.")...)
	}
	if memory > 0 {
		found = append(found,
			one(Warning, "The memory of processes is limited (ulimit -v): engines map whole models, and fail to load them.",
				"Start the server without that limit: ulimit -v unlimited")...)
	}
	if len(found) == 0 {
		return ok("The limits of this user's processes are high enough.")
	}
	return found
}

// released is a time before which no clock can be right.
var released = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock checks the machine's clock: certificates, tokens and usage depend on it.
func checkClock(_ context.Context, s *Subject) []Finding {
	var newest time.Time
	for _, path := range []string{s.Home.Database(), s.Home.Database() + "-wal", s.Home.Lock(), s.Home.Catalog()} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return ofClock(time.Now(), newest)
}

// ofClock compares the time with that of the newest file.
func ofClock(now, newest time.Time) []Finding {
	const advice = "Set it, or have it set over the network (timedatectl set-ntp true)."
	switch {
	case now.Before(released):
		return one(Problem, fmt.Sprintf("The machine's clock is wrong: it says %s.", now.Format(time.DateTime)), advice)
	case newest.Sub(now) > time.Hour:
		return one(Warning, fmt.Sprintf("The machine's clock went back: it says %s, and the home has a file of %s.",
			now.Format(time.DateTime), newest.Format(time.DateTime)), advice)
	default:
		return ok("The machine's clock says %s.", now.Format(time.RFC3339))
	}
}
