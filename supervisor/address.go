package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// dialTimeout bounds how long a connection to an engine may take. They are all on this machine.
const dialTimeout = 5 * time.Second

// errEnded is why no connection is made to a port: whoever listens there now isn't the engine.
var errEnded = errors.New("the engine has ended")

// settle gives a launch its folders, and chooses where it listens: on a socket in its own, where the build can, else on a port.
func (p *process) settle(l *Launch, b Build) error {
	var err error
	if b.Sockets || l.isConfined() {
		if l.Folder, err = p.options.folders.make(); err != nil {
			p.log.Warn("the engine gets no folder, so it listens on a port", "error", err)
		}
	}
	if l.isConfined() && b.mayUseGPU() && p.options.Cache != "" && os.MkdirAll(p.options.Cache, 0o700) == nil {
		l.Cache = p.options.Cache
	}
	if b.Sockets && l.Folder != "" {
		l.Socket = filepath.Join(l.Folder, socketName)
		return nil
	}
	l.Port, err = freePort()
	return err
}

// address is where a launch listens, as people read it.
func (l *Launch) address() string {
	if l.Socket != "" {
		return l.Socket
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port))
}

// engineURL is the URL of a path of an engine's. dial knows where the engine listens, whatever host the URL names.
func engineURL(path string) string { return "http://127.0.0.1" + path }

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

// dial connects to the engine. A port is free for anybody once the engine has ended, so a connection to one counts only if
// the process lived before and lives after.
func (p *process) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l := p.launched.Load()
	if l == nil {
		return nil, errors.New("the engine isn't launched yet")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if l.socket != "" {
		conn, err := dialer.DialContext(ctx, "unix", l.socket)
		if err != nil {
			return nil, err
		}
		return wholeConn{conn}, nil
	}
	if hasEnded(l.process) {
		return nil, errEnded
	}
	conn, err := dialer.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, err
	}
	if hasEnded(l.process) {
		_ = conn.Close()
		return nil, errEnded
	}
	return wholeConn{conn}, nil
}
