package runtimes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSelectAndRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(dir)
	older, newer := install(t, dir, 10000, "cpu"), install(t, dir, 11669, "vulkan")

	must(t, s.Select(older))
	same(t, "selection", s.selection(llamaCpp), older)
	must(t, s.Select(newer))
	same(t, "selection", s.selection(llamaCpp), newer)

	must(t, s.Remove(older))
	same(t, "selection after removing another", s.selection(llamaCpp), newer)
	must(t, s.Remove(newer))
	same(t, "selection after removing it", s.selection(llamaCpp), "")
	same(t, "what is left", contents(t, dir), []string{})
}

func TestSelect_IsPerEngine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	s := openTest(dir)
	llama, mlx := install(t, dir, 11669, "cpu"), installOf(t, dir, MLXLM, "0.31.3", "metal")
	_, err := s.Find(MLXLM, "")
	contains(t, err, "lmcaddy runtime get mlx-lm", "lmcaddy runtime select "+mlx)
	must(t, s.Select(llama))
	must(t, s.Select(mlx))
	for engine, name := range map[string]string{LlamaCpp: llama, MLXLM: mlx} {
		found, err := s.Find(engine, "")
		if must(t, err); found.Name != name || !found.Selected || found.Engine != engine {
			t.Errorf("%s: found %+v", engine, found)
		}
	}
	must(t, s.Remove(mlx))
	if found, err := s.Find(LlamaCpp, ""); err != nil || found.Name != llama {
		t.Errorf("found %v, %v", found.Name, err)
	}
	if _, err := s.Find(MLXLM, ""); !errors.Is(err, ErrNone) {
		t.Errorf("found what is removed: %v", err)
	}
	same(t, "folder", contents(t, dir), []string{llama, "selected"})

	// The file isn't written by Select.
	must(t, os.WriteFile(filepath.Join(dir, "selected.mlx-lm"), []byte(llama), 0o644))
	if found, err := s.Find(MLXLM, ""); !errors.Is(err, ErrNone) {
		t.Errorf("another engine's runtime was found: %v, %v", found.Name, err)
	}
}

func TestSelect_UnknownNameLeavesTheSelection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(dir)
	contains(t, s.Select("llama.cpp-b1-cpu"), "lmcaddy runtime get llama.cpp")
	name := install(t, dir, 11669, "cpu")
	must(t, s.Select(name))
	contains(t, s.Select("llama.cpp-b1-cpu"), "llama.cpp-b1-cpu", "installed: "+name)
	same(t, "selection", s.selection(llamaCpp), name)
	same(t, "files", contents(t, dir), []string{name, "selected"})
}

func TestNamesStayInsideTheStore(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	outside := install(t, parent, 11669, "cpu")
	dir := filepath.Join(parent, "runtimes")
	inside := install(t, dir, 11669, "cpu")
	must(t, os.WriteFile(filepath.Join(dir, "selected"), []byte("../"+outside+"\n"), 0o644))
	s := openTest(dir)
	same(t, "selection that leads outside", s.selection(llamaCpp), "")
	for _, name := range []string{
		"", ".", "..", "../" + outside, `..\` + outside, "/" + outside, filepath.Join(parent, outside), inside + "/../../" + outside,
		"./" + inside, inside + "/", ".staging-1", storeLock, "c:" + inside,
	} {
		if err := s.Remove(name); err == nil {
			t.Errorf("removed %q", name)
		}
		if err := s.Select(name); err == nil {
			t.Errorf("selected %q", name)
		}
	}
	contains(t, s.Remove("selected"), "not a runtime")
	if _, err := os.Stat(filepath.Join(parent, outside, manifestName)); err != nil {
		t.Errorf("a runtime outside the store is gone: %v", err)
	}
	if _, err := s.load(inside); err != nil {
		t.Errorf("the runtime inside is gone: %v", err)
	}
}
