package fakeengine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	_ = os.Unsetenv(fakekit.ProgramsVariable) // the fake is what is tested here
	os.Exit(m.Run())
}

// output keeps what a process prints.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // closed and renewed by each write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wrote != nil {
		close(o.wrote)
		o.wrote = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	text, _ := o.now()
	return text
}

// now is what was printed so far, and a channel that closes when there is more.
func (o *output) now() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wrote == nil {
		o.wrote = make(chan struct{})
	}
	return o.text.String(), o.wrote
}

// until waits until a text was printed, and returns all that was: what a process has written takes a moment to arrive.
func (o *output) until(t *testing.T, want string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		text, more := o.now()
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q was never printed:\n%s", want, text)
		}
	}
}

// engine is a started fake engine, as a launcher sees it.
type engine struct {
	*fakeengine.Engine
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr output
	started        fakeengine.Event
	exited         chan struct{}
	client         *http.Client
	key            string
}

// childMode is the environment that switches the child protocol on, and all that a child gets.
var childMode = []string{"LLAMA_SERVER_ROUTER_PORT=1"}

// start launches an engine on a free port and waits until it has told of its start.
func start(t *testing.T, e *fakeengine.Engine, env []string, args ...string) *engine {
	t.Helper()
	r := launch(t, e, env, append([]string{"-m", "/models/tiny.gguf", "--alias", "tiny", "--port", "0"}, args...)...)
	r.started = e.Wait(t, fakeengine.Of(r.cmd.Process.Pid, fakeengine.Started))
	return r
}

// ready launches an engine and waits until its model is loaded.
func ready(t *testing.T, s *fakeengine.Script, env []string, args ...string) *engine {
	t.Helper()
	r := start(t, fakeengine.Install(t, s), env, args...)
	r.await(fakeengine.Ready)
	return r
}

func launch(t *testing.T, e *fakeengine.Engine, env []string, args ...string) *engine {
	t.Helper()
	r := &engine{Engine: e, t: t, cmd: exec.Command(e.Path, args...), exited: make(chan struct{})}
	r.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(r.client.CloseIdleConnections)
	r.cmd.Env = append([]string{"PATH=/nowhere"}, env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.exited)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.exited
		if log := r.stderr.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Errorf("the engine is broken:\n%s", log)
		}
	})
	return r
}

// await waits for an event of this process.
func (r *engine) await(k fakeengine.Kind) fakeengine.Event {
	r.t.Helper()
	return r.Wait(r.t, fakeengine.Of(r.cmd.Process.Pid, k))
}

// awaitN waits for an event about one of the process's requests.
func (r *engine) awaitN(k fakeengine.Kind, n int) {
	r.t.Helper()
	r.Wait(r.t, func(e fakeengine.Event) bool { return e.Kind == k && e.N == n && e.PID == r.cmd.Process.Pid })
}

// wantExit waits for the process's end and checks how it ended, as os.ProcessState says it.
func (r *engine) wantExit(want string) {
	r.t.Helper()
	<-r.exited
	if got := r.cmd.ProcessState.String(); got != want {
		r.t.Errorf("ended with %q, want %q; stderr:\n%s", got, want, r.stderr.String())
	}
}

func (r *engine) url(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", r.started.Port, path)
}

// do sends a request: a GET where there is no body.
func (r *engine) do(path, body string) (*http.Response, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url(path), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	return r.client.Do(req)
}

// ask sends a request and returns its whole answer.
func (r *engine) ask(path, body string) (int, string) {
	r.t.Helper()
	resp, err := r.do(path, body)
	if err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s: %v after %q", path, err, text)
	}
	return resp.StatusCode, string(text)
}

// stream is a chat's stream under way.
type stream struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Reader
}

// stream begins a streamed chat. fields are further members of the request.
func (r *engine) stream(fields string) *stream {
	r.t.Helper()
	resp, err := r.do(chatPath, chatBody(`"stream":true`+fields))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("status %s", resp.Status)
	}
	return &stream{t: r.t, resp: resp, lines: bufio.NewReader(resp.Body)}
}

// next is the next event's data, or the error at the stream's end.
func (s *stream) next() (string, error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return line, err
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSuffix(data, "\n"), nil
		}
	}
}

// contents reads n text deltas.
func (s *stream) contents(n int) []string {
	s.t.Helper()
	var all []string
	for len(all) < n {
		data, err := s.next()
		if err != nil {
			s.t.Fatalf("after %q: %v", all, err)
		}
		if c := gjson.Get(data, "choices.0.delta.content"); c.Type == gjson.String {
			all = append(all, c.Str)
		}
	}
	return all
}

// rest is all events that are left, and the error that ended them: io.EOF for a clean end.
func (s *stream) rest() ([]string, error) {
	var all []string
	for {
		data, err := s.next()
		if err != nil {
			return all, err
		}
		all = append(all, data)
	}
}

const chatPath = "/v1/chat/completions"

// chatBody is a request with one message. fields are further members.
func chatBody(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"messages":[{"role":"user","content":"Say hello to me"}]` + fields + `}`
}

// abandon begins a chat that nobody waits for; the function that it returns closes the connection.
func (r *engine) abandon() (leave func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url(chatPath), strings.NewReader(chatBody("")))
	if err != nil {
		r.t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	return func() {
		cancel()
		<-gone
	}
}
