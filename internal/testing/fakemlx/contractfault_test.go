package fakemlx_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dead checks that a server's generation thread has died of an exception, and that its process lives on as if all were well.
func (p *process) dead(t *testing.T, why string) {
	t.Helper()
	p.stderr.until(t, "Exception in thread Thread-")
	p.stderr.until(t, "(_generate)")
	p.stderr.until(t, why)
	if answer := p.get("/health"); !strings.HasSuffix(answer, `{"status": "ok"}`) {
		t.Errorf("health: %q", answer)
	}
	answer, err := p.send(request(chats, asked(`"stream": true`)), quiet)
	if answer != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a dead server answers with %q, %v", answer, err)
	}
	select {
	case <-p.exited:
		t.Error("the process has ended")
	default:
	}
}

func TestContract_RequestsThatKillTheThread(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	tests := []struct{ name, path, body, came, why string }{
		{"prompt list", completions, `{"prompt": ["a", "b"]}`, empty, "unhashable type: 'list'"},
		{"empty prompt", completions, `{"prompt": "", "stream": true}`, streamHead + ": keepalive 0/0\n\n$", "TypeError: 'NoneType' object is not subscriptable"},
		{"stop of numbers", chats, asked(`"stop": [5]`), empty, "ValueError: text input must be of type"},
		{"stop number", chats, asked(`"stop": 5`), empty, "TypeError: 'int' object is not iterable"},
		{"top_k beyond the vocabulary", chats, asked(`"stream": true, "temperature": 1, "top_k": 100000`), streamHead + `(: keepalive \d+/\d+\n\n)*$`, "top_k"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c.command == nil {
				t.Parallel()
			}
			p := c.start(t).ready()
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := conn.Write([]byte(request(tt.path, tt.body))); err != nil {
				t.Fatal(err)
			}
			p.dead(t, tt.why)
			_ = conn.SetReadDeadline(time.Now().Add(quiet))
			came, _ := io.ReadAll(conn)
			matches(t, string(came), tt.came)
		})
	}
}

func TestContract_BiasBeyondTheVocabularyKills(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).ready()
	if answer, _ := p.send(request(chats, asked(`"logit_bias": {"9999999": 5}`)), patience); answer != "" {
		t.Errorf("answered with %q", answer)
	}
	<-p.exited
	if runtime.GOOS == "linux" && p.signal() != syscall.SIGSEGV {
		t.Errorf("ended with %v", p.cmd.ProcessState)
	}
}

// TestContract_ContinuedCompletionKillsTheThread shows what becomes of a prompt that is an earlier one with the whole of its answer.
func TestContract_ContinuedCompletionKillsTheThread(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).ready()
	matches(t, p.post(completions, `{"prompt": "one two.", "max_tokens": 4, `+c.forced()+`}`), `"text": "`+regexp.QuoteMeta(strings.Repeat(c.said, 4))+`"`)
	p.later(completions, `{"prompt": "one two.`+strings.Repeat(c.said, 4)+`", "max_tokens": 4}`)
	p.dead(t, "IndexError: list index out of range")
}

// TestContract_BiasIsForgotten shows that the batch forgets a bias, after a request that had none, once it has made a token.
func TestContract_BiasIsForgotten(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).ready()
	text := func(body string) string {
		_, rest, _ := strings.Cut(p.post(completions, body), `"text": "`)
		said, _, _ := strings.Cut(rest, `"}`)
		return said
	}
	text(`{"prompt": "plain", "max_tokens": 2}`)
	all := strings.Repeat(c.said, 6)
	if got := text(`{"prompt": "biased", "max_tokens": 6, "temperature": 5, ` + c.forced() + `}`); got == all || !strings.HasPrefix(got, c.said) {
		t.Errorf("after a plain request: %q", got)
	}
	if got := text(`{"prompt": "biased", "max_tokens": 6, "temperature": 5, ` + c.forced() + `}`); got != all {
		t.Errorf("after a request with a bias: %q", got)
	}
	text(`{"prompt": "plain", "max_tokens": 2, "logit_bias": {"0": 0}}`)
	if got := text(`{"prompt": "biased", "max_tokens": 6, "temperature": 5, ` + c.forced() + `}`); got != all {
		t.Errorf("after a request with a bias of nothing: %q", got)
	}
	text(`{"prompt": "plain", "max_tokens": 2}`)
	if got := text(`{"prompt": "biased", "max_tokens": 6, "temperature": 5, "seed": 1, ` + c.forced() + `}`); got != all {
		t.Errorf("served alone: %q", got)
	}
}

func TestContract_FailedLoadLeavesADeafProcess(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.startWith(t, filepath.Join(t.TempDir(), "nope")).listening()
	p.dead(t, "Error")
}

func TestContract_PortInUseLeavesAProcess(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := c.launch(t, l.Addr().(*net.TCPAddr).Port, "--model", c.model)
	p.stderr.until(t, "Address already in use")
	p.stderr.until(t, "OSError: [Errno ")
	select {
	case <-p.exited:
		t.Error("the process has ended")
	case <-time.After(quiet):
	}
}

func TestContract_ListensBeforeTheModelIsLoaded(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).listening()
	if answer := p.get("/health"); !strings.HasSuffix(answer, `{"status": "ok"}`) {
		t.Errorf("health: %q", answer)
	}
	matches(t, p.post(chats, asked(`"stream": false`)), answered) // it waits for the load
}

func TestContract_Help(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.launch(t, 0, "--help")
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("--help ends with %d", code)
	}
	for _, flag := range []string{"--model MODEL", "--max-tokens MAX_TOKENS", "--prompt-cache-bytes PROMPT_CACHE_BYTES", "--decode-concurrency ", "--min-p MIN_P"} {
		if !strings.Contains(p.stdout.String(), flag) {
			t.Errorf("--help says nothing of %s:\n%s", flag, p.stdout.String())
		}
	}
	p = c.launch(t, 0, "--ctx-size", "5")
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(p.stderr.String(), "error: unrecognized arguments: --ctx-size") {
		t.Errorf("an unknown flag ends it with %d: %s", code, p.stderr.String())
	}
}

func TestContract_Signals(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() || runtime.GOOS == "windows" {
		return
	}
	for sig, want := range map[syscall.Signal]string{syscall.SIGINT: "exit status 0", syscall.SIGTERM: "signal: terminated"} {
		t.Run(sig.String(), func(t *testing.T) {
			p := c.start(t).ready()
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			<-p.exited
			if got := p.cmd.ProcessState.String(); got != want {
				t.Errorf("ended with %s, want %s", got, want)
			}
		})
	}
}

// long starts an answer that never ends of itself, and returns once it has begun.
func (c *contract) long(t *testing.T, p *process, fields string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	body := fmt.Sprintf(`{"max_tokens": 1000000, %s%s, %s}`, fields, c.forced(), messages)
	if _, err := conn.Write([]byte(request(chats, body))); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestContract_BatchAndQueue(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).ready()
	conn := c.long(t, p, `"stream": true, `)
	began(t, conn)
	matches(t, p.post(chats, asked(`"logit_bias": {"0": 0}`)), answered) // beside it
	if answer, _ := p.send(request(chats, asked(`"seed": 1, "stream": true`)), quiet); answer != "" {
		t.Errorf("a request with a seed is answered beside another: %q", answer)
	}
	_ = conn.Close()
	matches(t, p.post(chats, asked(`"seed": 1`)), answered) // the closed stream has ended
}

func TestContract_UnstreamedAnswerGoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	if !c.destructive() {
		return
	}
	p := c.start(t).ready()
	conn := c.long(t, p, `"seed": 1, `)
	p.stderr.until(t, "Prompt processing progress: 0/") // it is being served: only a request with a seed begins so
	_ = conn.Close()
	if answer, _ := p.send(request(chats, asked(`"stream": true`)), quiet); answer != "" {
		t.Errorf("the next request is answered: %q", answer)
	}
}

// began waits for the first text of a stream.
func began(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var all []byte
	buffer := make([]byte, 4096)
	for !strings.Contains(string(all), "data: ") {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("the stream broke off: %v; so far %q", err, all)
		}
		all = append(all, buffer[:n]...)
	}
}
