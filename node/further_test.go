package node_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// toyProcess is the process of a further engine: llama-server's without anything that a process need not offer.
type toyProcess struct{ supervisor.Process }

// toyWire is its wire format.
type toyWire struct{ wire.Engine }

// toy is a further engine, with a format of its own.
func toy(path string) node.Engine {
	return node.Engine{
		Engine: supervisor.Engine{
			Name:    "toy_server",
			Formats: []catalog.Format{"toy"},
			Files:   []catalog.Files{{Format: "toy", Ending: ".toy", Read: readToy}},
			New: func(s supervisor.Setup) supervisor.Process {
				locate := func() (string, error) {
					if s.Path() != path {
						return "", errors.New("no toy is configured")
					}
					return path, nil
				}
				return toyProcess{&llamaserver.Process{Locate: locate}}
			},
		},
		Wire: toyWire{},
	}
}

func readToy(path string) (catalog.Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return catalog.Model{}, err
	}
	if string(text) != "a toy" {
		return catalog.Model{}, errors.New("it is no toy")
	}
	return catalog.Model{Type: catalog.TypeLLM, Architecture: "toy", MaxContextLength: 777, Experts: 4}, nil
}

// toyHome is a home that holds a toy, one that is broken, and the shipped model.
func toyHome(t *testing.T) home.Dir {
	t.Helper()
	dir := home.Dir(t.TempDir())
	for name, text := range map[string]string{"toys/ball/ball.toy": "a toy", "toys/broken/broken.toy": "a stone"} {
		file := filepath.Join(dir.Models(), filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	shipped, err := filepath.Abs("../testdata/models/lmcaddy")
	if err == nil {
		err = os.Symlink(shipped, filepath.Join(dir.Models(), "lmcaddy"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// openToys opens a node that has the engine, too.
func openToys(t *testing.T, path string) *node.Node {
	t.Helper()
	lock, err := node.Reserve(toyHome(t))
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler), toy(path))
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// A further engine is added where the node is opened, and nowhere else: its models are listed, loaded and told of.
func TestOpen_AFurtherEngine(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	n := openToys(t, fake.Path)
	settings := node.Settings{JIT: true, Engines: map[string]node.EngineSettings{"toy_server": {Path: fake.Path, Parallel: 3, Args: []string{"--threads", "1"}, Unconfined: true}}}
	if err := n.Push(1, settings); err != nil {
		t.Fatal(err)
	}
	target, err := n.Find(t.Context(), "toys/ball")
	if err != nil || target.Model.Format != "toy" || target.Model.MaxContextLength != 777 || target.Model.SizeBytes != 5 {
		t.Fatalf("model %+v, error %v", target.Model, err)
	}
	if _, ok := n.Wire(target.Model).(toyWire); !ok {
		t.Errorf("its wire is %T", n.Wire(target.Model))
	}
	// It offers no choices, so nothing of these counts.
	options := node.LoadOptions{ContextLength: 5, BatchSize: 6, Experts: 99, FlashAttention: supervisor.On, Draft: "toys/ball"}
	in, err := n.Load(t.Context(), target.Model, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := in.Spec
	if s.Engine != "toy_server" || s.ContextLength != 777 || s.Parallel != 1 || s.BatchSize != 0 || s.Experts != 0 || s.FlashAttention != supervisor.Auto ||
		s.Draft != nil || s.PromptCache != 0 || s.Checkpoints != 0 || in.Batch != 0 {
		t.Errorf("spec %+v, batch %d", s, in.Batch)
	}
	if want := int64(supervisor.RuntimeMemory + 5); s.Memory != want {
		t.Errorf("memory %d, want %d: it is guessed by the size of the file", s.Memory, want)
	}
	if n.Choices(in) != (supervisor.Choices{}) {
		t.Errorf("choices %+v", n.Choices(in))
	}
	lease, err := n.Acquire(t.Context(), target, node.Demand{})
	if err != nil || lease.Instance.ID != in.ID {
		t.Fatalf("lease %+v, error %v", lease, err)
	}
	lease.Release()
	started := fake.Wait(t, fakeengine.Is(fakeengine.Started))
	if line := strings.Join(started.Argv, " "); !strings.Contains(line, "ball.toy") || !strings.HasSuffix(line, "--threads 1") {
		t.Errorf("arguments %s", line)
	}
}

// The models of all engines stand beside each other, and the broken ones say why.
func TestOpen_AFurtherEngineBesideTheOthers(t *testing.T) {
	t.Parallel()
	n := openToys(t, "/nowhere")
	if err := n.Push(1, node.Settings{}); err != nil {
		t.Fatal(err)
	}
	if m, err := n.Find(t.Context(), "lmcaddy/tinychat"); err != nil || m.Model.Format != catalog.FormatGGUF {
		t.Errorf("%+v, %v", m.Model, err)
	}
	if _, err := n.Find(t.Context(), "toys/broken"); err == nil || !strings.Contains(err.Error(), "it is no toy") {
		t.Errorf("error %v", err)
	}
	err := n.Push(2, node.Settings{Engines: map[string]node.EngineSettings{"mlx": {}}})
	if err == nil || !strings.Contains(err.Error(), "engine mlx: there is no such engine; there are: llama_server, toy_server") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	target, err := n.Find(ctx, "toys/ball")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Load(ctx, target.Model, node.LoadOptions{}, nil); err == nil || !strings.Contains(err.Error(), "no toy is configured") {
		t.Errorf("error %v", err)
	}
}
