package node

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/echoengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemcp"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	fakemlx.MainIfChild()
	echoengine.MainIfChild()
	fakemcp.MainIfChild()
	os.Exit(m.Run())
}

const shipped = "../testdata/models/lmcaddy/tinychat"

func reserve(t *testing.T, dir home.Dir) *Lock {
	t.Helper()
	lock, err := Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func open(t *testing.T, dir home.Dir) *Node {
	t.Helper()
	n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// withModel is a home that holds the shipped model.
func withModel(t *testing.T) home.Dir {
	t.Helper()
	dir := home.Dir(t.TempDir())
	from, err := filepath.Abs(shipped)
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir.Models(), "lmcaddy"), 0o700)
	}
	if err == nil {
		err = os.Symlink(from, filepath.Join(dir.Models(), "lmcaddy", "tinychat"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func push(t *testing.T, n *Node, gen uint64, s Settings) {
	t.Helper()
	if err := n.Push(gen, s); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_OneNodeForAHome(t *testing.T) {
	t.Parallel()
	dir := home.Dir(filepath.Join(t.TempDir(), "new"))
	first := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
	if _, err := Reserve(dir); err == nil || !strings.Contains(err.Error(), string(dir)) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("%v, want an error that names the home and the process", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	for _, path := range []string{string(dir), dir.Run(), dir.Models()} {
		if info, err := os.Stat(path); err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o700) {
			t.Errorf("%s: %v, %v: want a folder for this user alone", path, info.Mode(), err)
		}
	}
}

func TestPush_TheNewestThatIsAliveIsInForce(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	jit := func(want bool, when string) {
		t.Helper()
		if got := n.Settings().JIT; got != want {
			t.Errorf("%s: jit is %v, want %v", when, got, want)
		}
	}
	push(t, n, 1, Settings{JIT: true})
	jit(true, "the first")
	push(t, n, 2, Settings{JIT: false})
	jit(false, "the second")
	n.Pop(2) // a reload that failed
	jit(true, "the second gone")
	n.Pop(2)
	push(t, n, 3, Settings{JIT: false})
	n.Pop(1) // a reload that went well: the older goes later
	jit(false, "the first gone")
	n.Pop(3)
	jit(false, "none left")
	if err := n.Push(4, Settings{ModelsDirs: []string{"relative"}}); err == nil {
		t.Error("a relative folder was taken")
	}
}

func TestPush_PreloadsOnceAndReloadsKeepTheProcess(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	n := open(t, withModel(t))
	settings := Settings{
		Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off}),
		Models:  map[string]ModelSettings{"lmcaddy/tinychat": {Preload: true, ContextLength: 700, Parallel: 3, Args: []string{"--threads", "1"}}},
	}
	push(t, n, 1, settings)
	testkit.Eventually(t, "the model is loaded", func() bool {
		all := n.Overview().Instances
		return len(all) == 1 && all[0].Status == schedule.Ready
	})
	first := n.Overview().Instances[0]
	if first.Spec.ContextLength != 768 || first.Spec.Parallel != 3 || len(first.Spec.Args) != 2 {
		t.Errorf("loaded with %+v", first.Spec)
	}
	push(t, n, 2, settings)
	n.Pop(1)
	lease, err := n.Loads.Acquire(t.Context(), Target{Model: first.Spec.Model}, Demand{})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	if lease.Instance.PID != first.PID || len(n.Overview().Instances) != 1 {
		t.Errorf("process %d became %d", first.PID, lease.Instance.PID)
	}
}

func TestClose_LeavesNoProcess(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	dir := withModel(t)
	n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
	push(t, n, 1, Settings{JIT: true, Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off})})
	target, err := n.Names.Find(t.Context(), "tinychat")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := n.Loads.Acquire(t.Context(), target, Demand{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if fakeengine.Alive(lease.Instance.PID) {
		t.Error("the engine outlives the node")
	}
	lease.Release() // late, and harmless
}

func TestFind_KnowsInstancesWhoseFilesAreGone(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	dir := withModel(t)
	n := open(t, dir)
	push(t, n, 1, Settings{JIT: true, Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off})})
	target, err := n.Names.Find(t.Context(), "tinychat")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := n.Loads.Load(t.Context(), target.Model, LoadOptions{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir.Models(), "lmcaddy", "tinychat")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lmcaddy/tinychat": "lmcaddy/tinychat", "LMCADDY/tinychat:2": "lmcaddy/tinychat:2"} {
		testkit.Eventually(t, "the catalog has looked again", func() bool {
			if _, err := n.Models(t.Context()); err != nil { // a listing looks at the disk; what is known is found without
				t.Fatal(err)
			}
			target, err = n.Names.Find(t.Context(), name)
			return err == nil && target.Instance == want
		})
	}
	_, err = n.Names.Find(t.Context(), "lmcaddy/tinychat:3")
	if _, missing := errors.AsType[*catalog.NotFoundError](err); !missing {
		t.Errorf("error %v", err)
	}
	models, err := n.Models(t.Context())
	if err != nil || len(models) != 1 || len(models[0].Instances) != 2 {
		t.Errorf("models %+v, error %v", models, err)
	}
}

func TestLogSwitch_FollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	var before, after bytes.Buffer
	handler := func(to *bytes.Buffer) slog.Handler { return slog.NewTextHandler(to, nil) }
	s := newLogSwitch(handler(&before))
	log := slog.New(s).With("part", "catalog").WithGroup("file")
	log.Info("one", "name", "a")
	next := handler(&after)
	s.to.Store(&next)
	log.Info("two", "name", "b")
	log.Debug("three")
	if got := before.String(); !strings.Contains(got, "msg=one part=catalog file.name=a") || strings.Contains(got, "two") {
		t.Errorf("before: %s", got)
	}
	if got := after.String(); !strings.Contains(got, "msg=two part=catalog file.name=b") || strings.Contains(got, "three") {
		t.Errorf("after: %s", got)
	}
}
