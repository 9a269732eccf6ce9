package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"

	gopsnet "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"
)

// checkPorts checks that a server could listen where its sites say. One that runs does.
func checkPorts(ctx context.Context, s *Subject) []Finding {
	if s.Server != nil || s.Config == nil {
		return nil
	}
	var found []Finding
	var free []string
	for _, site := range s.Config.Sites {
		for _, address := range site.Addresses {
			_, at, isURL := strings.Cut(address, "://")
			if _, _, err := net.SplitHostPort(at); !isURL || err != nil {
				continue // a socket, or a range of ports
			}
			if bad := tryPort(ctx, at); bad != nil {
				found = append(found, bad...)
				continue
			}
			free = append(free, at)
		}
	}
	if len(found) == 0 && len(free) > 0 {
		found = ok("Nothing else listens on %s.", strings.Join(free, ", "))
	}
	return found
}

// tryPort listens on an address for a moment; nil: that was possible.
func tryPort(ctx context.Context, at string) []Finding {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	switch {
	case err == nil:
		_ = l.Close()
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return one(Problem, fmt.Sprintf("%s is in use by %s.", at, listener(ctx, at)),
			"Stop that program, or choose another port: in the site's address, or with lmcaddy serve --listen.")
	case errors.Is(err, fs.ErrPermission):
		return one(Problem, fmt.Sprintf("This user may not listen on %s: ports below 1024 are the system's.", at),
			"Choose a port above 1023, or on Linux run: sudo setcap cap_net_bind_service=+ep $(which lmcaddy)")
	default:
		return one(Problem, fmt.Sprintf("No server can listen on %s: %v.", at, err),
			"Correct the address in the Caddyfile: it must be one of this machine's.")
	}
}

// listener names the process that listens on an address.
func listener(ctx context.Context, at string) string {
	const unknown = "another program"
	_, text, _ := net.SplitHostPort(at) // it was split before
	port, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return unknown
	}
	all, err := gopsnet.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return unknown
	}
	for _, c := range all {
		if c.Status != "LISTEN" || c.Laddr.Port != uint32(port) || c.Pid == 0 {
			continue
		}
		name := "a program"
		if p, err := process.NewProcessWithContext(ctx, c.Pid); err == nil {
			if said, err := p.NameWithContext(ctx); err == nil {
				name = said
			}
		}
		return fmt.Sprintf("%s (process %d)", name, c.Pid)
	}
	return unknown + ", which belongs to another user"
}
