package harness

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// Terminal is a terminal of 80 columns in which lmcaddy runs.
type Terminal struct {
	home *Home
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{} // closed when nothing more comes

	mu    sync.Mutex
	shown strings.Builder
	read  int // how much of it was waited for
}

// Terminal runs lmcaddy in a terminal. It is killed at the end of the test.
func (h *Home) Terminal(args ...string) *Terminal {
	h.T.Helper()
	cmd := exec.CommandContext(h.T.Context(), h.Program(), args...)
	cmd.Dir, cmd.Env = h.Work, append([]string{"TERM=xterm-256color"}, h.environment()...)
	attributes := h.attributes()
	if attributes == nil {
		attributes = new(syscall.SysProcAttr)
	}
	attributes.Setsid, attributes.Setctty = true, true
	tty, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 80}, attributes)
	if err != nil {
		h.T.Fatal(err)
	}
	t := &Terminal{home: h, cmd: cmd, tty: tty, done: make(chan struct{})}
	go t.watch()
	h.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
		<-t.done
	})
	return t
}

// watch keeps what is shown, without the sequences that control a terminal.
func (t *Terminal) watch() {
	defer close(t.done)
	buf := make([]byte, 4096)
	for {
		n, err := t.tty.Read(buf)
		t.mu.Lock()
		t.shown.Write(buf[:n])
		t.mu.Unlock()
		if err != nil { // the program has ended
			return
		}
	}
}

var (
	// skipped matches a move to the right, over a space that is there already.
	skipped  = regexp.MustCompile(`\x1b\[C`)
	controls = regexp.MustCompile(`\x1b\[[0-9;<=>?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]`)
)

// Shown returns what was shown.
func (t *Terminal) Shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return controls.ReplaceAllString(skipped.ReplaceAllString(t.shown.String(), " "), "")
}

// Raw returns what was shown, with the sequences that control the terminal.
func (t *Terminal) Raw() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.String()
}

// Wait waits until a text is shown after what was waited for before.
func (t *Terminal) Wait(text string) {
	t.home.T.Helper()
	found := func() bool {
		shown := t.Shown()
		i := strings.Index(shown[min(t.read, len(shown)):], text)
		if i >= 0 {
			t.read += i + len(text)
		}
		return i >= 0
	}
	for by := time.Now().Add(Patience); !found(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(by) {
			t.home.T.Fatalf("%q isn't shown:\n%s", text, t.Shown())
		}
	}
}

// Type types keys. Enter is \r.
func (t *Terminal) Type(keys string) {
	t.home.T.Helper()
	if _, err := t.tty.WriteString(keys); err != nil {
		t.home.T.Fatal(err)
	}
}

// End waits for the end of the program, and returns its status.
func (t *Terminal) End() int {
	t.home.T.Helper()
	select {
	case <-t.done:
	case <-time.After(Patience):
		t.home.T.Fatalf("lmcaddy doesn't end:\n%s", t.Shown())
	}
	err := t.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.home.T.Fatal(err)
	}
	return t.cmd.ProcessState.ExitCode()
}
