package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// places are the variables that say where an engine may write.
func (l Launch) places() []string {
	if l.Folder == "" {
		return nil
	}
	env := []string{"TMPDIR=" + l.Folder}
	if l.isConfined() {
		dir := cmp.Or(l.Cache, l.Folder)
		env = append(env, "HOME="+dir, "XDG_CACHE_HOME="+dir, "CUDA_CACHE_PATH="+filepath.Join(dir, "cuda"))
	}
	return env
}

// files are those of the model, which the engine has to read.
func (l Launch) files() []string {
	var files []string
	for _, path := range []string{l.Model.Path, l.Model.Projector} {
		if path != "" {
			files = append(files, path)
		}
	}
	if l.Draft != nil {
		files = append(files, l.Draft.Path)
	}
	return files
}

// dialTimeout bounds how long connecting to an engine may take. All engines are on this machine.
const dialTimeout = 5 * time.Second

// errEnded says that a port no longer belongs to the engine, since its process has exited.
var errEnded = errors.New("the engine has ended")

// settle sets the folders and the address of a launch: a socket in its folder if the build supports that, or else a port. The folder is
// also the working directory, where engines look for libraries and modules: nobody else can have put any there.
func (p *Process) settle(l *Launch, b Build) error {
	var err error
	if l.Folder, err = p.host.folders.make(); err != nil {
		p.log.Warn("the engine's folder can't be created, so it listens on a port, and runs in this server's folder", "error", err)
	}
	if l.isConfined() && b.mayUseGPU() && p.host.Cache != "" && os.MkdirAll(p.host.Cache, 0o700) == nil {
		l.Cache = p.host.Cache
	}
	if b.Sockets && l.Folder != "" {
		l.Socket = filepath.Join(l.Folder, socketName)
		return nil
	}
	l.Port, err = p.host.Port()
	return err
}

// address returns where a launch listens, for people.
func (l *Launch) address() string {
	if l.Socket != "" {
		return l.Socket
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port))
}

// engineURL returns the URL of a path. Its host doesn't matter, since dial connects to the engine.
func engineURL(path string) string { return "http://" + engineHost + path }

const engineHost = "127.0.0.1"

const (
	// idleTimeout is how long a connection to an engine is kept without a request. llama-server closes idle connections after 5 s. Closing
	// them first avoids failed requests.
	idleTimeout = 4 * time.Second
	// maxHead bounds the header of an engine's answer, in bytes.
	maxHead = 1 << 20
)

// freePort returns a free port. If another program takes it before the engine does, the engine reports that, and another port
// is tried.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the engine: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// dial connects to the engine. Once the engine has exited, another program may listen on its port, so a connection to a port is
// used only if the process is alive before and after connecting.
func (p *Process) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l := p.launched.Load()
	if l == nil {
		return nil, errors.New("the engine isn't launched yet")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if l.socket != "" {
		return dialer.DialContext(ctx, "unix", l.socket)
	}
	if child.HasEnded(l.process) {
		return nil, errEnded
	}
	conn, err := dialer.DialContext(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	if child.HasEnded(l.process) {
		_ = conn.Close()
		return nil, errEnded
	}
	return conn, nil
}
