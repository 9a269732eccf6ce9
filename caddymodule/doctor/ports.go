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
func checkPorts(ctx context.Context, s *Subject) (found findings) {
	if s.Server != nil || s.Config == nil {
		return nil
	}
	var free []string
	for _, site := range s.Config.Sites {
		for _, address := range site.Addresses {
			_, at, isURL := strings.Cut(address, "://")
			if _, _, err := net.SplitHostPort(at); !isURL || err != nil {
				continue // a socket, or a range of ports
			}
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
			switch {
			case err == nil:
				_ = l.Close()
				free = append(free, at)
			case errors.Is(err, syscall.EADDRINUSE):
				found.problem("Stop that program, or choose another port: in the site's address, or with lmcaddy serve --listen.",
					"%s is in use by %s.", at, listener(ctx, at))
			case errors.Is(err, fs.ErrPermission):
				found.problem("Choose a port above 1023, or on Linux run: sudo setcap cap_net_bind_service=+ep $(which lmcaddy)",
					"This user may not listen on %s: ports below 1024 are the system's.", at)
			default:
				found.problem("Correct the address in the Caddyfile: it must be one of this machine's.",
					"No server can listen on %s: %v.", at, err)
			}
		}
	}
	if len(found) == 0 && len(free) > 0 {
		found.ok("Nothing else listens on %s.", strings.Join(free, ", "))
	}
	return found
}

// listener names the process that listens on an address.
func listener(ctx context.Context, at string) string {
	_, port, _ := net.SplitHostPort(at)                  // it was split before
	all, _ := gopsnet.ConnectionsWithContext(ctx, "tcp") // without them, it isn't known
	for _, c := range all {
		if c.Status != "LISTEN" || strconv.Itoa(int(c.Laddr.Port)) != port || c.Pid == 0 {
			continue
		}
		if p, err := process.NewProcessWithContext(ctx, c.Pid); err == nil {
			if name, err := p.NameWithContext(ctx); err == nil {
				return fmt.Sprintf("%s (process %d)", name, c.Pid)
			}
		}
	}
	return "another program, which belongs to another user"
}
