package fakemlx_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestMain(m *testing.M) {
	fakemlx.MainIfChild()
	fakeengine.MainIfChild()                  // as a backend
	_ = os.Unsetenv(fakekit.ProgramsVariable) // the fake is what is tested here
	os.Exit(m.Run())
}

// patience is how long a test waits for what has to come.
const patience = time.Minute

// output keeps what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// until waits until a text was printed.
func (o *output) until(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, want+" is printed", func() bool { return strings.Contains(o.String(), want) })
}

// process is a started server.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	port   int
	stdout output
	stderr output
	exited chan struct{}
}

// launch starts a server on a port.
func launch(t *testing.T, command []string, port int, args ...string) *process {
	t.Helper()
	p := &process{t: t, port: port, exited: make(chan struct{})}
	argv := append(append(command[1:len(command):len(command)], args...), "--port", fmt.Sprint(port))
	p.cmd = exec.Command(command[0], argv...)
	p.cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "PYTHONUNBUFFERED=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
	})
	return p
}

// signal is the one that ended the process.
func (p *process) signal() syscall.Signal {
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signal()
}

// listening waits until the port can be reached.
func (p *process) listening() *process {
	p.t.Helper()
	p.stderr.until(p.t, "Starting httpd at")
	return p
}

// ready waits until the model is loaded, which only a request tells.
func (p *process) ready() *process {
	p.t.Helper()
	p.listening()
	answer := p.post("/v1/completions", `{"prompt": "Hi", "max_tokens": 1, "logit_bias": {"0": 0}}`)
	if !strings.HasPrefix(answer, "HTTP/1.0 200 OK\r\n") {
		p.t.Fatalf("the first request was answered with %q; the log:\n%s", answer, p.stderr.String())
	}
	return p
}

// post sends a body and returns the whole answer, header and all.
func (p *process) post(path, body string) string {
	p.t.Helper()
	return p.exchange(request(path, body))
}

// later sends a body and returns what is to get the whole answer, or what came of it before an error.
func (p *process) later(path, body string) <-chan string {
	answered := make(chan string, 1)
	go func() {
		answer, _ := p.send(request(path, body), patience)
		answered <- answer
	}()
	return answered
}

func request(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func (p *process) get(path string) string {
	p.t.Helper()
	return p.exchange("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
}

// exchange sends the bytes of a request and returns those of the answer, up to the end of the connection.
func (p *process) exchange(request string) string {
	p.t.Helper()
	answer, err := p.send(request, patience)
	if err != nil {
		p.t.Fatalf("%v; so far: %q; the log:\n%s", err, answer, p.stderr.String())
	}
	return answer
}

func (p *process) send(request string, limit time.Duration) (string, error) {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// folder is a model's folder for a fake.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "llama", "vocab_size": 300}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start installs a fake and starts it with a model.
func start(t *testing.T, s *fakemlx.Script, args ...string) (*fakemlx.Engine, *process) {
	t.Helper()
	e := fakemlx.Install(t, s)
	return e, startInstalled(t, e, append([]string{"--model", folder(t)}, args...)...)
}

// startInstalled starts a fake on a port of its own choice.
func startInstalled(t *testing.T, e *fakemlx.Engine, args ...string) *process {
	t.Helper()
	p := launch(t, []string{e.Path}, 0, args...)
	p.port = e.Wait(t, fakekit.Of(p.cmd.Process.Pid, fakekit.Started)).Port
	return p
}

// chat is a body with one message, streamed, with further fields before it.
func chat(fields string) string {
	return `{` + fields + `"stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "How are you?"}]}`
}
