package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// patience is how long something may take that takes a moment.
const patience = 30 * time.Second

// server is something that answers on loopback: lmcaddy, or an engine that was started by hand. Its methods end the step if they fail.
type server struct {
	m         *machine
	base, key string
	cmd       *exec.Cmd
	stdin     io.Closer // of an engine
	ended     chan struct{}
}

// begin starts a process, and waits until it answers GET path.
func (m *machine) begin(cmd *exec.Cmd, port int, key, output, path string) *server {
	s := &server{m: m, base: fmt.Sprintf("http://127.0.0.1:%d", port), key: key, cmd: cmd, ended: make(chan struct{})}
	s.stdin = must(cmd.StdinPipe()) // an engine ends when it closes
	out := must(os.OpenFile(filepath.Join(m.home, output), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	check(cmd.Start())
	go func() {
		_ = cmd.Wait() // nobody needs the status
		close(s.ended)
	}()
	for {
		if _, err := s.try(http.MethodGet, path, nil); err == nil {
			return s
		}
		select {
		case <-s.ended:
			check(fmt.Errorf("%s ended: see %s", cmd.Path, out.Name()))
		case <-m.ctx.Done():
			s.stop()
			check(fmt.Errorf("%s doesn't answer: see %s", cmd.Path, out.Name()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// start starts lmcaddy with lines of the blocks of lm and of the engine.
func (m *machine) start(lm, engine string) *server {
	if m.args != "" {
		engine += "\nargs " + m.args
	}
	port, caddyfile := freePort(), filepath.Join(m.home, "gpu.Caddyfile")
	check(os.WriteFile(caddyfile, fmt.Appendf(nil, "{\nadmin off\ngrace_period 5s\nlm {\n%s\nengine llama_server {\n%s\n}\n}\n}\n"+
		"http://:%d {\nbind 127.0.0.1\nmetrics /metrics\nlm_api\n}\n", lm, engine, port), 0o600))
	cmd := m.command("run", "--config", caddyfile)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its engines
	return m.begin(cmd, port, "", "lmcaddy.log", "/v1/models")
}

func freePort() int {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	return must(strconv.Atoi(port))
}

// stop ends the process, and waits for it. It may have ended.
func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

func (s *server) try(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(s.m.ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(path + ": " + answer.Status + ": " + string(text))
	}
	return text, err
}

func (s *server) get(path string) gjson.Result {
	return gjson.ParseBytes(must(s.try(http.MethodGet, path, nil)))
}

func (s *server) post(path string, body any) gjson.Result {
	return gjson.ParseBytes(must(s.try(http.MethodPost, path, must(json.Marshal(body)))))
}

// answer is what a chat has taken.
type answer struct {
	took           time.Duration
	prompt, cached int64 // tokens
	rate           float64
}

// chat has a model answer with a number of tokens.
func (s *server) chat(model, prompt string, tokens int) answer {
	begin := time.Now()
	reply := s.post("/v1/chat/completions", map[string]any{
		"model": model, "max_tokens": tokens, "temperature": 0, "messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	a := answer{took: time.Since(begin), prompt: reply.Get("usage.prompt_tokens").Int(), cached: reply.Get("usage.prompt_tokens_details.cached_tokens").Int()}
	if got := reply.Get("usage.completion_tokens").Int(); got != int64(tokens) {
		check(fmt.Errorf("an answer of %d tokens has %d", tokens, got))
	}
	a.rate = float64(tokens) / a.took.Seconds()
	return a
}

// load loads a model. It returns how long that took, and the answer.
func (s *server) load(model string) (time.Duration, gjson.Result) {
	begin := time.Now()
	loaded := s.post("/api/v1/models/load", map[string]any{"model": model})
	return time.Since(begin), loaded
}

// unload returns how long the model took to leave.
func (s *server) unload(model string) time.Duration {
	begin := time.Now()
	s.post("/api/v1/models/unload", map[string]any{"instance_id": model})
	return time.Since(begin)
}

// ps is what lmcaddy ps says, which is more than requests without a token are told.
func (m *machine) ps() gjson.Result {
	return gjson.ParseBytes(output(m.command("ps", "--json")))
}

// instance is what ps says of a model; nothing: it isn't loaded.
func (m *machine) instance(model string) gjson.Result {
	return m.ps().Get(fmt.Sprintf("instances.#(model==%q)", model))
}

// device is what ps says of the GPU that is measured.
func (m *machine) device() gjson.Result { return m.ps().Get(fmt.Sprintf("devices.#(name==%q)", m.gpu)) }

// metric is the sum of a metric's samples with a label.
func (s *server) metric(name, label string) (sum int64) {
	for line := range strings.Lines(string(must(s.try(http.MethodGet, "/metrics", nil)))) {
		if labels, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(labels, name+"{") && strings.Contains(labels, label) {
			sum += int64(must(strconv.ParseFloat(value, 64)))
		}
	}
	return sum
}
