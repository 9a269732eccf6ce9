package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// hands does by hand what it has seen lmcaddy do once.
type hands struct {
	executable string
	launches   map[string]launch
	port       int
	running    *byHand // nil: none
}

// launch is how lmcaddy started a model's engine.
type launch struct {
	args, env []string
	apiKey    string
}

// byHand is an engine that was started by hand.
type byHand struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// newHands has lmcaddy load both models, the second one last, and does the same.
func newHands(t testing.TB, s *harness.Server, models swapped) *hands {
	h := &hands{executable: executable(t, s.Home), launches: map[string]launch{}, port: harness.FreePort(t)}
	for _, model := range models {
		s.Chat(harness.Ask("Hello").With("model", model).With("max_tokens", 8))
		h.launches[model] = look(t, s.Engine(), h.port)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the engine that was started by hand: %v", err)
		}
	})
	if _, err := h.swap(models[1]); err != nil {
		t.Fatal(err)
	}
	return h
}

// executable is the llama-server that lmcaddy uses.
func executable(t testing.TB, home *harness.Home) string {
	found := home.Command("runtime", "ls", "--json")
	for _, r := range gjson.Parse(found.Output).Array() {
		if r.Get("selected").Bool() {
			return r.Get("path").Str
		}
	}
	path, err := exec.LookPath("llama-server")
	if err != nil {
		t.Fatalf("which llama-server does lmcaddy use? %v\n%s", err, found.Output)
	}
	return path
}

// look finds out how an engine was started; the one that is started like it listens on another port.
func look(t testing.TB, engine harness.Process, port int) launch {
	// A start script puts its own arguments before those from lmcaddy.
	own := slices.Index(engine.Args, "-m")
	host := slices.Index(engine.Args, "--host") + 1 // a socket's path
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", engine.PID))
	if err != nil || own < 0 || host == 0 {
		t.Fatalf("how was the engine started? %v, %v", engine.Args, err)
	}
	l := launch{args: append(slices.Clone(engine.Args[own:]), "--port", strconv.Itoa(port))}
	l.args[host-own] = "127.0.0.1"
	if states := slices.Index(l.args, "--slot-save-path") + 1; states > 0 {
		l.args[states] = t.TempDir() // lmcaddy removes its own when the engine has ended
	}
	for variable := range bytes.SplitSeq(bytes.TrimSuffix(environ, []byte{0}), []byte{0}) {
		if bytes.HasPrefix(variable, []byte("LMCADDY_")) {
			continue // a mark by which lmcaddy would recognize this engine as its own, and end it
		}
		if bytes.HasPrefix(variable, []byte("PATH=")) {
			continue // the engine's own PATH is empty; a start script needs the shell's
		}
		l.env = append(l.env, string(variable))
		if key, ok := strings.CutPrefix(string(variable), "LLAMA_API_KEY="); ok {
			l.apiKey = key
		}
	}
	return l
}

// swap stops the running engine, starts the model's, waits until it is ready, and sends it a request.
func (h *hands) swap(model string) (time.Duration, error) {
	begin := time.Now()
	if err := h.stop(); err != nil {
		return 0, err
	}
	l := h.launches[model]
	if err := h.start(l); err != nil {
		return 0, err
	}
	return firstByte(begin, "http://"+harness.Address(h.port), model, l.apiKey)
}

func (h *hands) stop() error {
	e := h.running
	if e == nil {
		return nil
	}
	h.running = nil
	if _, err := io.WriteString(e.stdin, "cmd_router_to_child:exit\n"); err != nil {
		return err
	}
	late := time.AfterFunc(patience, func() { _ = e.cmd.Process.Kill() })
	defer late.Stop()
	return e.cmd.Wait()
}

func (h *hands) start(l launch) error {
	cmd := exec.Command(h.executable, l.args...)
	cmd.Env = l.env
	stdin, err := cmd.StdinPipe() // the engine ends when it closes
	if err != nil {
		return err
	}
	said, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = stdout
	err = cmd.Start()
	_ = stdout.Close()
	if err != nil {
		_ = said.Close()
		return err
	}
	h.running = &byHand{cmd, stdin}
	ready := make(chan bool, 1)
	go func() {
		defer said.Close()
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), `cmd_child_to_router:state:{"state":"ready"`) {
				ready <- true
				break
			}
		}
		close(ready)
		_, _ = io.Copy(io.Discard, said) // otherwise the engine would block
	}()
	select {
	case ok := <-ready:
		if !ok {
			return errors.New("the engine that was started by hand ended before it was ready")
		}
		return nil
	case <-time.After(patience):
		return errors.New("the engine that was started by hand doesn't get ready")
	}
}
