package runtimes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// executable creates an executable file, and returns its path.
func executable(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(serverScript(1)), 0o755))
	return path
}

func TestFind_ConfiguredThenSelectedThenPath(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	s := openTest(dir)

	if _, err := s.Find(LlamaCpp, ""); !errors.Is(err, ErrNone) {
		t.Errorf("nothing is there, but the error is %v", err)
	}

	onPath := executable(t, bin, "llama-server")
	found, err := s.Find(LlamaCpp, "")
	must(t, err)
	same(t, "on PATH", found, Runtime{Engine: LlamaCpp, Path: onPath, Source: OnPath})

	name := install(t, dir, 11669, "cpu")
	if found, err = s.Find(LlamaCpp, ""); err != nil || found.Path != onPath {
		t.Errorf("one that isn't selected was found: %v, %v", found, err)
	}
	must(t, s.Select(name))
	found, err = s.Find(LlamaCpp, "")
	must(t, err)
	same(t, "selected", found, Runtime{
		Name: name, Engine: LlamaCpp, Version: "b11669", Variant: "cpu",
		Path: filepath.Join(dir, name, "llama-server"), Source: Installed, Selected: true,
	})

	configured := executable(t, t.TempDir(), "my-server")
	found, err = s.Find(LlamaCpp, configured)
	must(t, err)
	same(t, "configured", found, Runtime{Engine: LlamaCpp, Path: configured, Source: Configured})
}

// An environment that somebody has made in the folder is found, but not before one that is selected.
func TestFind_AnEnvironmentMadeByHand(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	s := openTest(dir)
	for _, name := range []string{"mlx", ".hidden", "my-venv"} {
		must(t, os.MkdirAll(filepath.Join(dir, name, "bin"), 0o755))
		executable(t, filepath.Join(dir, name, "bin"), "mlx_lm.server")
	}
	executable(t, bin, "mlx_lm.server")
	want := Runtime{Engine: MLXLM, Path: filepath.Join(dir, "my-venv", "bin", "mlx_lm.server"), Source: Installed}
	found, err := s.Find(MLXLM, "")
	must(t, err)
	same(t, "made by hand", found, want)
	list, err := s.List()
	must(t, err)
	if len(list) != 2 || list[0].Path != want.Path || list[1].Source != OnPath {
		t.Errorf("the list is %+v", list)
	}
	if _, err := s.Find(LlamaCpp, ""); !errors.Is(err, ErrNone) {
		t.Errorf("for another engine: %v", err)
	}
}

func TestFind_ConfiguredPathErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	must(t, os.WriteFile(plain, nil, 0o644))
	for _, test := range []struct{ name, path, says string }{
		{"missing", filepath.Join(dir, "missing"), "doesn't exist"},
		{"no such command", "no-such-llama-server", "doesn't exist"},
		{"folder", dir, "is a folder"},
		{"not executable", plain, "isn't executable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := openTest(t.TempDir()).Find(LlamaCpp, test.path)
			contains(t, err, test.path, test.says, "engine llama_server { path")
			if errors.Is(err, ErrNone) {
				t.Error("a wrong path is taken for none")
			}
		})
	}
}

func TestFind_SelectedButGone(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	dir := t.TempDir()
	s := openTest(dir)
	name := install(t, dir, 11669, "cpu")
	must(t, s.Select(name))
	must(t, os.Remove(filepath.Join(dir, name, "llama-server")))
	if _, err := s.Find(LlamaCpp, ""); !errors.Is(err, ErrNone) {
		t.Errorf("found what is gone: %v", err)
	}
	onPath := executable(t, bin, "llama-server")
	found, err := s.Find(LlamaCpp, "")
	must(t, err)
	same(t, "path", found.Path, onPath)
}

func TestFind_SelectedWithoutItsModeSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	s := openTest(dir)
	name := install(t, dir, 11669, "cpu")
	must(t, s.Select(name))
	must(t, os.Chmod(filepath.Join(dir, name, "llama-server"), 0o644))
	_, err := s.Find(LlamaCpp, "")
	contains(t, err, name, "llama-server isn't executable", "chmod +x")
	if errors.Is(err, ErrNone) {
		t.Errorf("it is taken for none: %v", err)
	}
}

func TestFind_SaysWhatCouldBeSelected(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	name := install(t, dir, 11669, "cpu")
	_, err := openTest(dir).Find(LlamaCpp, "")
	contains(t, err, "lmcaddy runtime get llama.cpp", "lmcaddy runtime select "+name)
}

func TestFind_ThroughLinks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	parent, elsewhere := t.TempDir(), t.TempDir()
	// The store is a link, and so is the runtime in it.
	dir := filepath.Join(parent, "runtimes")
	real := filepath.Join(elsewhere, "store")
	must(t, os.Mkdir(real, 0o755))
	must(t, os.Symlink(real, dir))
	name := install(t, filepath.Join(elsewhere, "shared"), 11669, "cpu")
	must(t, os.Symlink(filepath.Join(elsewhere, "shared", name), filepath.Join(real, name)))

	s := openTest(dir)
	must(t, s.Select(name))
	found, err := s.Find(LlamaCpp, "")
	must(t, err)
	same(t, "path", found.Path, filepath.Join(dir, name, "llama-server"))

	must(t, s.Remove(name))
	if _, err := os.Stat(filepath.Join(elsewhere, "shared", name, manifestName)); err != nil {
		t.Errorf("removing a link removed what it led to: %v", err)
	}
	if _, err := s.Find(LlamaCpp, ""); !errors.Is(err, ErrNone) {
		t.Errorf("the link is still found: %v", err)
	}
}
