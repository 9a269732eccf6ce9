package runtimes

import (
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
	same(t, "selection", s.selection(), older)
	must(t, s.Select(newer))
	same(t, "selection", s.selection(), newer)

	must(t, s.Remove(older))
	same(t, "selection after removing another", s.selection(), newer)
	must(t, s.Remove(newer))
	same(t, "selection after removing it", s.selection(), "")
	same(t, "what is left", contents(t, dir), []string{})
}

func TestSelect_UnknownNameLeavesTheSelection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(dir)
	contains(t, s.Select("llama.cpp-b1-cpu"), "lmcaddy runtime get llama.cpp")
	name := install(t, dir, 11669, "cpu")
	must(t, s.Select(name))
	contains(t, s.Select("llama.cpp-b1-cpu"), "llama.cpp-b1-cpu", "installed: "+name)
	same(t, "selection", s.selection(), name)
	same(t, "files", contents(t, dir), []string{name, selectionName})
}

func TestNamesStayInsideTheStore(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	outside := install(t, parent, 11669, "cpu")
	dir := filepath.Join(parent, "runtimes")
	inside := install(t, dir, 11669, "cpu")
	must(t, os.WriteFile(filepath.Join(dir, selectionName), []byte("../"+outside+"\n"), 0o644))
	s := openTest(dir)
	same(t, "selection that leads outside", s.selection(), "")
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
	contains(t, s.Remove(selectionName), "not a runtime")
	if _, err := os.Stat(filepath.Join(parent, outside, manifestName)); err != nil {
		t.Errorf("a runtime outside the store is gone: %v", err)
	}
	if _, err := s.load(inside); err != nil {
		t.Errorf("the runtime inside is gone: %v", err)
	}
}
