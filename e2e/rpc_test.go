package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// rpcWorker is `lmcaddy rpc-worker`, with a real worker of llama.cpp.
type rpcWorker struct {
	home    *harness.Home
	address string
	cmd     *exec.Cmd
}

func newWorker(h *harness.Home) *rpcWorker {
	return &rpcWorker{home: h, address: harness.Address(harness.FreePort(h.T))}
}

// start starts the worker, and waits until it listens.
func (w *rpcWorker) start() {
	t := w.home.T
	t.Helper()
	cmd := exec.Command(w.home.Program(), "rpc-worker", "--listen", w.address, "--threads", "1", "--no-cache")
	cmd.Env = []string{"LMCADDY_HOME=" + w.home.Dir, "HOME=" + w.home.User, "PATH=" + w.home.Path}
	said := make(chan string, 1)
	out := &firstLines{until: "Devices:", to: said}
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.cmd = cmd
	t.Cleanup(w.kill)
	select {
	case text := <-said:
		if !strings.Contains(text, "listens on "+w.address) || !strings.Contains(text, "no passwords") {
			t.Fatalf("the worker says %q", text)
		}
	case <-time.After(harness.Patience):
		t.Fatalf("the worker at %s doesn't listen: run lmcaddy runtime get llama.cpp, which adds it to older runtimes", w.address)
	}
}

// kill kills lmcaddy rpc-worker, with which the worker ends.
func (w *rpcWorker) kill() {
	if w.cmd != nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		w.cmd = nil
	}
}

// process is the worker itself.
func (w *rpcWorker) process() harness.Process {
	w.home.T.Helper()
	for _, p := range w.home.Family() {
		if strings.Contains(strings.Join(p.Args, " "), "ggml-rpc-server -H 127.0.0.1 -p ") && p.Parent() == w.cmd.Process.Pid {
			return p
		}
	}
	w.home.T.Fatal("the worker doesn't run")
	return harness.Process{}
}

// firstLines passes on what is written until a text comes.
type firstLines struct {
	until string
	to    chan<- string
	text  strings.Builder
	done  bool
}

func (f *firstLines) Write(p []byte) (int, error) {
	f.text.Write(p)
	if !f.done && strings.Contains(f.text.String(), f.until) {
		f.done = true
		f.to <- f.text.String()
	}
	return len(p), nil
}

// startOnWorkers starts a server whose models run on workers, which don't run yet.
func startOnWorkers(t *testing.T) (s *harness.Server, first, second *rpcWorker) {
	h := harness.NewHome(t)
	h.AddModel("lmcaddy/other", "other-f16.gguf", harness.ShippedModel(t))
	h.AddModel("lmcaddy/local", "local-f16.gguf", harness.ShippedModel(t))
	first, second = newWorker(h), newWorker(h)
	s = harness.Start(h, harness.Config{LM: []string{
		"stall_timeout 4s",
		fmt.Sprintf("model %s {\n\t\t\trpc %s %s\n\t\t}", harness.Model, first.address, second.address),
		fmt.Sprintf("model lmcaddy/other {\n\t\t\trpc %s\n\t\t}", second.address),
	}})
	return s, first, second
}

// wantAbsent checks that a request is refused at once, with the worker that is missing.
func wantAbsent(t *testing.T, s *harness.Server, w *rpcWorker) {
	t.Helper()
	begun := time.Now()
	r := s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, 503)
	if !strings.Contains(r.Body, "no worker listens at "+w.address) && !strings.Contains(r.Body, "worker_lost") {
		t.Errorf("%s", r.Body)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// wantBack waits until the model answers again, by itself.
func wantBack(t *testing.T, s *harness.Server) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the model answers again", func() bool {
		r := s.Post(harness.ChatPath, harness.Ask(capital))
		return r.Status == 200 && r.Answer(s).Content == paris
	})
}

func TestRPC_AModelOnTwoWorkers(t *testing.T) {
	t.Parallel()
	s, first, second := startOnWorkers(t)
	first.start()
	wantAbsent(t, s, second) // at the start
	second.start()
	wantBack(t, s)

	ask := harness.Ask("Count to thirty.").With("max_tokens", 200)
	if here, there := s.Chat(ask.With("model", "lmcaddy/local")), s.Chat(ask); here.Content != there.Content || here.Content == "" {
		t.Errorf("%q on workers, %q here", there.Content, here.Content)
	}

	// Another model needs one of the workers, and gets it; then the first one gets it back.
	if a := s.Chat(harness.Ask(capital).With("model", "lmcaddy/other")); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	loaded := s.Get("/api/v1/ps").Body
	if strings.Contains(loaded, `"`+harness.Model+`"`) {
		t.Errorf("both are loaded: %s", loaded)
	}
	wantBack(t, s)

	// A worker that ends is noticed at once, though nobody asks.
	second.kill()
	harness.Eventually(t, harness.Patience, "the model is unloaded", func() bool {
		return !strings.Contains(s.Get("/api/v1/ps").Get("instances").Raw, harness.Model)
	})
	wantAbsent(t, s, second)
	second.start()
	wantBack(t, s)

	// Amid an answer.
	st := s.Stream(harness.Long(4000))
	st.WaitContent()
	first.kill()
	st.WaitEnd()
	chunks := st.Chunks()
	if last := chunks[len(chunks)-1].Get("error.message").Str; !strings.Contains(last, "no worker listens at "+first.address) && !strings.Contains(last, "several machines") {
		t.Errorf("the stream ended with %s", chunks[len(chunks)-1])
	}
	first.start()
	wantBack(t, s)
}

func TestRPC_AWorkerThatHangs(t *testing.T) {
	t.Parallel() // it mostly waits
	s, first, second := startOnWorkers(t)
	first.start()
	second.start()
	wantBack(t, s)
	frozen := second.process()
	frozen.Pause(t)
	begun := time.Now()
	r := s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, 503)
	if !strings.Contains(r.Body, second.address+" doesn't answer") {
		t.Errorf("%s", r.Body)
	}
	if took := time.Since(begun); took > 40*time.Second {
		t.Errorf("it took %s", took)
	}
	frozen.Resume(t)
	wantBack(t, s)
	if !frozen.Alive() {
		t.Error("the worker was ended by a client that had given up")
	}
}

// The worker ends with its terminal, and never listens where the internet may reach it.
func TestRPC_TheWorkerItself(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	w := newWorker(h)
	w.start()
	process := w.process()
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("it was interrupted, and ended with %v", err)
	}
	w.cmd = nil
	harness.Eventually(t, harness.Patience, "the worker has ended", func() bool { return !process.Alive() })
	if r := h.Command("rpc-worker", "--listen", "203.0.113.1"); r.Status != 1 || !strings.Contains(r.Output, "isn't a private address") {
		t.Errorf("%d: %s", r.Status, r.Output)
	}
}

// TestRPC_Images: a model that sees pictures says the same of one on a worker as here.
func TestRPC_Images(t *testing.T) {
	t.Parallel()
	h := withVision(t)
	for _, file := range []string{"tinyvision-q4_0.gguf", "mmproj-tinyvision-f16.gguf"} {
		content, err := os.ReadFile(filepath.Join(h.Dir, "models", filepath.FromSlash(visionModel), file))
		if err != nil {
			t.Fatal(err)
		}
		h.AddModel("lmcaddy/local", file, content)
	}
	w := newWorker(h)
	w.start()
	s := harness.Start(h, harness.Config{LM: []string{fmt.Sprintf("model %s {\n\t\t\trpc %s\n\t\t}", visionModel, w.address)}})
	picture := "data:image/png;base64," + base64.StdEncoding.EncodeToString(red(t)["png"])
	ask := harness.Fields{"temperature": 0, "max_tokens": 24, "messages": []harness.Fields{{"role": "user", "content": []harness.Fields{
		{"type": "text", "text": "Describe"}, {"type": "image_url", "image_url": harness.Fields{"url": picture}},
	}}}}
	there, here := s.Chat(ask.With("model", visionModel)), s.Chat(ask.With("model", "lmcaddy/local"))
	if there.Content != here.Content || there.Reasoning != here.Reasoning || there.Usage.Prompt != here.Usage.Prompt || there.Content == "" {
		t.Errorf("%+v on a worker, %+v here", there, here)
	}
}
