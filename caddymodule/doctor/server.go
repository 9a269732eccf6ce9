package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
	gopsnet "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/resource"
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

// checkConfiguration checks that the configuration is valid, and who can use its sites.
func checkConfiguration(_ context.Context, s *Subject) (found findings) {
	where := cmp.Or(s.File, "The default configuration")
	switch {
	case errors.Is(s.Error, fs.ErrNotExist) || errors.Is(s.Error, fs.ErrPermission):
		return found.problem("Name the Caddyfile with --config, and see whether this user may read it.", "%s can't be read: %s.", where,
			strings.TrimSuffix(s.Error.Error(), "."))
	case s.Error != nil:
		return found.problem(`Correct it; "lmcaddy validate" checks it again.`, "%s is not valid: %s.", where,
			strings.TrimSuffix(s.Error.Error(), "."))
	}
	configured, err := os.Stat(s.Config.Home)
	commands, failed := os.Stat(string(s.Home))
	isSame := err == nil && failed == nil && os.SameFile(configured, commands)
	if other := s.Config.Home; other != "" && filepath.Clean(other) != filepath.Clean(string(s.Home)) && !isSame {
		found.warn("Leave home out of the Caddyfile, or set LMCADDY_HOME to the same folder where commands are typed.",
			"The configuration has the home %s, and commands look for the server on %s.", other, s.Home)
	}
	for _, mistake := range s.Config.Mistakes {
		found.warn(`Correct it in the Caddyfile; "lmcaddy reload" applies it.`, "%s.", upperFirst(mistake))
	}
	for _, site := range s.Config.Sites {
		if site.Reachable && !site.Authentication {
			found.warn(`Put lm_auth before lm_api, and create a token with "lmcaddy token create"; or bind the site to 127.0.0.1.`,
				"Anybody who can reach %s can use the models.", strings.Join(site.Addresses, ", "))
		}
		if site.Reachable && site.Authentication && !site.TLS {
			found.warn("Use https in the site's address: tls internal makes a certificate for a local network.",
				"Tokens and conversations are sent to %s unencrypted, unless a proxy before it does TLS.",
				strings.Join(site.Addresses, ", "))
		}
	}
	switch {
	case len(found) > 0:
	case len(s.Config.Sites) == 0:
		found.warn(`Add lm_api to a site, or start the server with "lmcaddy serve".`,
			"No site has lm_api: only commands on this machine can use the models.")
	default:
		found.ok("%s is valid.", upperFirst(where))
	}
	return found
}

func upperFirst(text string) string {
	if text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// others asks the running server, which alone knows them, for the remotes and the nodes of the cluster.
func (s *Subject) others(ctx context.Context, found *findings, what string) (o resource.Overview, ok bool) {
	if s.Server == nil {
		found.ok("The configuration has %s. Whether they can be reached shows once the server runs.", what)
		return o, false
	}
	if err := s.Server.Get(ctx, "/api/v1/ps", &o); err != nil {
		found.warn(`See "lmcaddy log".`, "Whether %s can be reached isn't known: %v.", what, err)
		return o, false
	}
	return o, true
}

func checkRemotes(ctx context.Context, s *Subject) (found findings) {
	if s.Config == nil || len(s.Config.Remotes) == 0 {
		return nil
	}
	o, _ := s.others(ctx, &found, count(len(s.Config.Remotes), "remote", "remotes"))
	for i := range o.Remotes {
		switch r := &o.Remotes[i]; {
		case r.Status == resource.RemoteUnreachable:
			found.problem("Start that server, or correct the address or the key in the block of the remote. "+
				"Requests go to other places that have the model meanwhile.",
				"The remote %s (%s) can't be reached: %s.", r.Name, r.URL, strings.TrimRight(r.Error, "."))
		case r.Status == resource.RemoteConnecting:
			found.warn("Ask again in a few seconds.", "The remote %s (%s) hasn't answered yet.", r.Name, r.URL)
		case r.Models == 0:
			found.warn("Load a model there, or correct the patterns of models in the block of the remote.",
				"The remote %s (%s, %s) has no model that is used.", r.Name, r.Kind, r.URL)
		default:
			found.ok("The remote %s (%s) is connected. Models: %d.", r.Name, strings.TrimSpace(r.Kind+" "+r.Version), r.Models)
		}
	}
	return found
}

// checkCluster checks whether the nodes of the cluster can be reached.
func checkCluster(ctx context.Context, s *Subject) (found findings) {
	isCluster := func(o resource.Setting) bool { return o.Name == "cluster" && o.Source == resource.FromFile }
	if s.Config == nil || !slices.ContainsFunc(s.Config.Settings, isCluster) {
		return nil
	}
	o, ok := s.others(ctx, &found, "the nodes of a cluster")
	switch {
	case ok && len(o.Nodes) == 0:
		found.problem(`See "lmcaddy log", and whether PostgreSQL runs and can be reached from here.`,
			"The nodes of the cluster can't be read from the store.")
	case len(o.Nodes) == 1:
		found.warn("Start others with the same store, each with the address where it is reached.", "No other node is in the cluster.")
	}
	for i := range o.Nodes {
		switch n := &o.Nodes[i]; {
		case n.Status == resource.RemoteUnreachable:
			found.problem("Start that server, or correct the address in its option cluster: "+
				"the other nodes must reach a site with lm_api there.",
				"The node %s (%s) of the cluster can't be reached: %s.", n.Name, n.URL, strings.TrimRight(n.Error, "."))
		case n.Status == resource.NodeLate:
			found.problem("Look at the network between that server and PostgreSQL.",
				"The node %s (%s) of the cluster can't reach the store.", n.Name, n.URL)
		case n.Self:
			found.ok("This server is the node %s of the cluster.", n.Name)
		default:
			found.ok("The node %s of the cluster is %s.", n.Name, n.Status)
		}
	}
	return found
}
