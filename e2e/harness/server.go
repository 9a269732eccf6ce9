package harness

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a running lmcaddy.
type Server struct {
	*Home
	Base string // http://127.0.0.1:port
	PID  int

	client *http.Client
	header http.Header // sent with each request
	cmd    *exec.Cmd
	output string        // the file with its outputs
	exited chan struct{} // closed when it has ended
	ended  *bool         // Stop or Kill has waited for its end
}

// Start starts lmcaddy with a Caddyfile in a new home, on a free port unless the configuration names one, and waits until
// it answers.
func Start(h *Home, c Config) *Server {
	h.T.Helper()
	if c.Port == 0 {
		c.Port = FreePort(h.T)
	}
	return h.Launch(c.Port, "run", "--config", h.WriteFile("Caddyfile", c.String()))
}

// Launch starts lmcaddy with arguments, and waits until it responds on a port.
func (h *Home) Launch(port int, args ...string) *Server {
	h.T.Helper()
	s := h.Begin(port, args...)
	s.waitReady()
	return s
}

// Begin starts lmcaddy with arguments, to serve on a port, and doesn't wait for it.
func (h *Home) Begin(port int, args ...string) *Server {
	h.T.Helper()
	out, err := os.CreateTemp(h.Work, "log")
	if err != nil {
		h.T.Fatal(err)
	}
	defer out.Close()
	s := &Server{
		Home:   h,
		Base:   base(port),
		client: &http.Client{Transport: &http.Transport{DialContext: h.Net.dialer()}},
		cmd:    exec.Command(h.Program(), args...),
		output: out.Name(),
		exited: make(chan struct{}),
		ended:  new(bool),
	}
	s.cmd.Dir, s.cmd.Env, s.cmd.SysProcAttr = h.Work, h.environment(), h.attributes()
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := h.Net.do(s.cmd.Start); err != nil {
		h.T.Fatal(err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait() // the receiver of exited reads the status
		close(s.exited)
	}()
	h.T.Cleanup(s.cleanup)
	return s
}

// In returns the same server for a subtest, which gets its failures.
func (s *Server) In(t testing.TB) *Server {
	server := *s
	server.Home = s.Home.In(t)
	return &server
}

// As returns the same server, for requests with a token; empty: none.
func (s *Server) As(token string) *Server {
	server := *s
	server.header = http.Header{}
	if token != "" {
		server.header.Set("Authorization", "Bearer "+token)
	}
	return &server
}

// On returns the same server on another port, to which a reload has moved it.
func (s *Server) On(port int) *Server {
	server := *s
	server.Base = base(port)
	return &server
}

func base(port int) string { return "http://" + Address(port) }

func (s *Server) waitReady() {
	s.T.Helper()
	Eventually(s.T, Patience, "the server answers", func() bool {
		if s.HasEnded() {
			s.T.Fatalf("lmcaddy ended with status %d:\n%s", s.cmd.ProcessState.ExitCode(), s.Log())
		}
		reply, err := s.try(s.T.Context(), http.MethodGet, "/v1/models", nil)
		return err == nil && (reply.Status == http.StatusOK || reply.Status == http.StatusUnauthorized && s.hasSocket())
	})
}

// hasSocket reports whether commands can reach the server. A site refuses requests without a token before that.
func (s *Server) hasSocket() bool {
	conn, err := net.Dial("unix", filepath.Join(s.Dir, "run", "lmcaddy.sock"))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// cleanup stops the server as a user would, unless the test has ended it.
func (s *Server) cleanup() {
	if !*s.ended {
		if status := s.Stop(syscall.SIGINT, Patience); status != 0 {
			s.T.Errorf("lmcaddy ended with status %d", status)
		}
	}
	if s.T.Failed() {
		s.T.Logf("the log of process %d:\n%s", s.PID, tail(s.Log(), 60))
	}
}

// CloseIdleConnections keeps later requests from using connections of before. A reload closes idle ones, possibly at the moment when a
// request is sent.
func (s *Server) CloseIdleConnections() { s.client.CloseIdleConnections() }

// Reload gives the server a new Caddyfile.
func (s *Server) Reload(caddyfile string) Result {
	s.T.Helper()
	result := s.Command("reload", "--config", s.WriteFile("Caddyfile", caddyfile))
	s.CloseIdleConnections()
	return result
}

// HasEnded reports whether the process has ended.
func (s *Server) HasEnded() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Signal sends the process a signal.
func (s *Server) Signal(sig syscall.Signal) {
	s.T.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.T.Errorf("signal %v to lmcaddy: %v", sig, err)
	}
}

// Pause suspends the process, but not its engines.
func (s *Server) Pause() {
	s.T.Helper()
	Process{PID: s.PID}.pause(s.T)
}

// Resume continues a paused process.
func (s *Server) Resume() {
	s.T.Helper()
	s.Signal(syscall.SIGCONT)
}

// Stop sends a signal, and waits for the process to end. An engine that outlives it fails the test.
func (s *Server) Stop(sig syscall.Signal, within time.Duration) (status int) {
	s.T.Helper()
	s.Signal(sig)
	return s.WaitEnd(within)
}

// WaitEnd waits for a process that is ending. If it doesn't end in time, it is killed and the test fails; an engine that
// outlives it fails the test, too.
func (s *Server) WaitEnd(within time.Duration) (status int) {
	s.T.Helper()
	status = s.WaitExit(within)
	if left := s.Engines(); len(left) > 0 {
		s.T.Errorf("lmcaddy has ended, but its engines run: %v", left)
	}
	return status
}

// WaitExit is WaitEnd of a process that leaves it to the system to end its engines, which takes a moment more.
func (s *Server) WaitExit(within time.Duration) (status int) {
	s.T.Helper()
	*s.ended = true
	s.client.CloseIdleConnections()
	select {
	case <-s.exited:
	case <-time.After(within):
		s.T.Errorf("lmcaddy didn't end within %s; killing it", within)
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	return s.cmd.ProcessState.ExitCode()
}

// Kill ends the process like a crash, without a chance to clean up. It may have ended already.
func (s *Server) Kill() {
	s.T.Helper()
	*s.ended = true
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.T.Fatal(err)
	}
	<-s.exited
}

// Log is what the process has written.
func (s *Server) Log() string {
	content, err := os.ReadFile(s.output)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(content)
}

// RunFile is a file of the home's run folder. It must exist.
func (h *Home) RunFile(name string) string {
	h.T.Helper()
	path := filepath.Join(h.Dir, "run", name)
	if _, err := os.Lstat(path); err != nil {
		h.T.Fatal(err)
	}
	return path
}

func tail(text string, n int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
