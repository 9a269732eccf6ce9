package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/echoengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// echo is a further engine, with a format of its own.
var echo = node.Engine{Engine: echoengine.Engine(), Wire: echoengine.Wire{}}

// withEchoes is a home that holds a model of the echo engine, one that is broken, and the shipped model.
func withEchoes(t *testing.T) home.Dir {
	t.Helper()
	dir := home.Dir(t.TempDir())
	for name, text := range map[string]string{"echo/canyon/canyon.echo": "echo\ncontext: 777\nexperts: 4\n", "echo/broken/broken.echo": "a stone"} {
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

// openWithEcho opens a node that has the engine, too.
func openWithEcho(t *testing.T) *node.Node {
	t.Helper()
	return openWith(t, echo)
}

// openWith opens a node on such a home that has one engine more.
func openWith(t *testing.T, further node.Engine) *node.Node {
	t.Helper()
	lock, err := node.Reserve(withEchoes(t))
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler), further)
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
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	n := openWithEcho(t)
	settings := node.Settings{JIT: true, Engines: map[string]node.EngineSettings{"echo": {Path: path, Parallel: 3, Args: []string{"--greeting", "oh"}}}}
	if err := n.Push(1, settings); err != nil {
		t.Fatal(err)
	}
	target, err := n.Names.Find(t.Context(), "echo/canyon")
	if err != nil || target.Model.Format != echoengine.Format || target.Model.MaxContextLength != 777 || target.Model.SizeBytes != 29 {
		t.Fatalf("model %+v, error %v", target.Model, err)
	}
	if _, ok := n.Engines.Wire(target.Model).(echoengine.Wire); !ok {
		t.Errorf("its wire is %T", n.Engines.Wire(target.Model))
	}
	// It offers no choices, so nothing of these counts.
	options := node.LoadOptions{ContextLength: 5, BatchSize: 6, Experts: 99, FlashAttention: schedule.On, Draft: "echo/canyon"}
	in, err := n.Loads.Load(t.Context(), target.Model, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := in.Spec
	if s.Engine != "echo" || s.ContextLength != 777 || s.Parallel != 1 || s.BatchSize != 0 || s.Experts != 0 || s.FlashAttention != schedule.Auto ||
		s.Draft != nil || s.PromptCache != 0 || s.Checkpoints != 0 || in.Batch != 0 {
		t.Errorf("spec %+v, batch %d", s, in.Batch)
	}
	if want := int64(schedule.RuntimeMemory + 29 + 1<<20); s.Memory != want {
		t.Errorf("memory %d, want %d: it is as the engine estimates", s.Memory, want)
	}
	if n.Engines.Choices(in) != (process.Choices{}) {
		t.Errorf("choices %+v", n.Engines.Choices(in))
	}
	lease, err := n.Loads.Acquire(t.Context(), target, node.Demand{})
	if err != nil || lease.Instance.ID != in.ID {
		t.Fatalf("lease %+v, error %v", lease, err)
	}
	defer lease.Release()
	answer, err := lease.Post(t.Context(), "/generate", []byte("user: hello\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "oh ") {
		t.Errorf("it was started without the arguments that are configured: it answers %s, error %v", text, err)
	}
}

// What an engine doesn't estimate takes the size of its files and a tenth.
func TestOpen_AFurtherEngineWithoutAnEstimate(t *testing.T) {
	t.Parallel()
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	plain := echo
	plain.Estimate = nil
	n := openWith(t, plain)
	if err := n.Push(1, node.Settings{Engines: map[string]node.EngineSettings{"echo": {Path: path}}}); err != nil {
		t.Fatal(err)
	}
	target, err := n.Names.Find(t.Context(), "echo/canyon")
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.Loads.Load(t.Context(), target.Model, node.LoadOptions{}, nil)
	if want := int64(schedule.RuntimeMemory + 29 + 2); err != nil || in.Spec.Memory != want {
		t.Errorf("memory %d, want %d; error %v", in.Spec.Memory, want, err)
	}
}

// The models of all engines stand beside each other, and the broken ones say why.
func TestOpen_AFurtherEngineBesideTheOthers(t *testing.T) {
	t.Parallel()
	n := openWithEcho(t)
	if err := n.Push(1, node.Settings{}); err != nil {
		t.Fatal(err)
	}
	if m, err := n.Names.Find(t.Context(), "lmcaddy/tinychat"); err != nil || m.Model.Format != catalog.FormatGGUF {
		t.Errorf("%+v, %v", m.Model, err)
	}
	if _, err := n.Names.Find(t.Context(), "echo/broken"); err == nil || !strings.Contains(err.Error(), "it is no model of the echo engine") {
		t.Errorf("error %v", err)
	}
	err := n.Push(2, node.Settings{Engines: map[string]node.EngineSettings{"mlx": {}}})
	if err == nil || !strings.Contains(err.Error(), "engine mlx: there is no such engine; there are: echo, llama_server") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	target, err := n.Names.Find(ctx, "echo/canyon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Loads.Load(ctx, target.Model, node.LoadOptions{}, nil); err == nil || !strings.Contains(err.Error(), "no echo engine is configured") {
		t.Errorf("error %v", err)
	}
}

// A model that its engine can't run is refused on every way to a load, before anything is started.
func TestOpen_AModelThatItsEngineCannotRun(t *testing.T) {
	t.Parallel()
	choosy := echo
	choosy.Runs = func(m *catalog.Model) error { return errors.New("The model " + m.Key + " is too quiet.") }
	choosy.Find = func(process.Setup) (string, error) { return "", errors.New("it was looked for") }
	n := openWith(t, choosy)
	if err := n.Push(1, node.Settings{JIT: true, Models: map[string]node.ModelSettings{"echo/canyon": {Preload: true}}}); err != nil {
		t.Fatal(err)
	}
	target, err := n.Names.Find(t.Context(), "echo/canyon")
	if err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func() error{
		"a load": func() error {
			_, err := n.Loads.Load(t.Context(), target.Model, node.LoadOptions{}, nil)
			return err
		},
		"a request": func() error {
			_, err := n.Loads.Acquire(t.Context(), target, node.Demand{})
			return err
		},
		"a request with a context length": func() error {
			_, err := n.Loads.Acquire(t.Context(), target, node.Demand{ContextLength: 100})
			return err
		},
	} {
		var refused *translate.Error
		if err := load(); !errors.As(err, &refused) || refused.Code != "unsupported_model" || refused.Status() != 400 || refused.Message != "The model echo/canyon is too quiet." {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if all := n.Overview(); len(all.Instances)+len(all.Failing)+len(all.Coming) > 0 {
		t.Errorf("something was started: %+v", all)
	}
}

// An engine that is started by a command gets the configured one, and runs without a sandbox.
func TestOpen_AnEngineWithACommand(t *testing.T) {
	t.Parallel()
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	commanded := echo
	commanded.Command, commanded.NoSandbox = true, "it is an echo"
	commanded.Find = func(s process.Setup) (string, error) { return s.Command()[0], nil }
	commanded.New = func(s process.Setup) process.Program {
		s.Path = func() string { return s.Command()[0] }
		return echo.New(s)
	}
	n := openWith(t, commanded)
	if err := n.Push(1, node.Settings{Engines: map[string]node.EngineSettings{"echo": {Command: []string{path}}}}); err != nil {
		t.Fatal(err)
	}
	target, err := n.Names.Find(t.Context(), "echo/canyon")
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.Loads.Load(t.Context(), target.Model, node.LoadOptions{}, nil)
	if err != nil || in.Sandbox != "off: it is an echo" {
		t.Errorf("sandbox %q, error %v", in.Sandbox, err)
	}
}

// predicting is an engine that drafts with layers of any model.
type predicting struct{ process.Program }

func (predicting) Predicts(*catalog.Model) bool { return true }

// TestLoads_AModelDraftsForItself if that is not at the cost of its context or slots, and nothing else was chosen.
func TestLoads_AModelDraftsForItself(t *testing.T) {
	t.Parallel()
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	heads := echo
	heads.New = func(s process.Setup) process.Program { return predicting{echo.New(s)} }
	heads.Choices = func(*catalog.Model) process.Choices { return process.Choices{Draft: true, Parallel: true} }
	heads.Fixed = func(args []string) process.Fixed { return process.Fixed{Draft: len(args) > 0} }
	heads.Estimate = func(s *schedule.Spec) (catalog.Memory, error) {
		if s.SelfDraft == "draft-mtp" {
			return catalog.Memory{Weights: 500 << 20}, nil
		}
		return catalog.Memory{Weights: 100 << 20}, nil
	}
	n := openWith(t, heads)
	for i, tt := range []struct {
		budget   int64
		settings node.ModelSettings
		want     string
	}{
		{4 << 30, node.ModelSettings{}, "draft-mtp"},
		{600 << 20, node.ModelSettings{}, ""}, // it would have fewer slots
		{300 << 20, node.ModelSettings{Parallel: 1}, ""},
		{4 << 30, node.ModelSettings{Draft: "off"}, ""},
		{4 << 30, node.ModelSettings{Draft: "ngram-simple"}, "ngram-simple"},
		{4 << 30, node.ModelSettings{Args: []string{"--spec-type"}}, ""},
	} {
		settings := node.Settings{
			MemoryBudget: node.Budget{Bytes: tt.budget}, Engines: map[string]node.EngineSettings{"echo": {Path: path}},
			Models: map[string]node.ModelSettings{"echo/canyon": tt.settings},
		}
		if err := n.Push(uint64(i+1), settings); err != nil {
			t.Fatal(err)
		}
		target, err := n.Names.Find(t.Context(), "echo/canyon")
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, fmt.Sprintf("row %d is so", i), func() bool { // a budget counts a little later
			f, err := n.Loads.Forecast(t.Context(), target.Model, node.LoadOptions{})
			return err == nil && f.Spec.SelfDraft == tt.want
		})
	}
	if err := n.Push(9, node.Settings{Models: map[string]node.ModelSettings{"echo/canyon": {Draft: "mtp"}}}); err != nil {
		t.Fatal(err)
	}
	target, err := n.Names.Find(t.Context(), "echo/canyon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Loads.Forecast(t.Context(), target.Model, node.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "has no layers that predict") {
		t.Errorf("error %v", err)
	}
}
