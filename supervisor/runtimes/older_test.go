package runtimes

import "testing"

func TestTooOld(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	s := openTest(dir)
	same(t, "without an engine", s.TooOld(LlamaCpp, "", ""), "")
	older := install(t, dir, 10000, "cpu")
	must(t, s.Select(older))
	const get = `get the newest with "lmcaddy runtime get llama.cpp"`
	same(t, "the only one", s.TooOld(LlamaCpp, "", ""), "llama.cpp b10000, which is selected, is too old for this model; "+get)
	newer := install(t, dir, 11669, "cpu")
	same(t, "with a newer one", s.TooOld(LlamaCpp, "", ""),
		`llama.cpp b10000, which is selected, is too old for this model; b11669 is installed: select it with "lmcaddy runtime select `+newer+`"`)
	must(t, s.Select(newer))
	found, err := s.Find(LlamaCpp, "")
	must(t, err)
	same(t, "one in the configuration", s.TooOld(LlamaCpp, found.Path, ""),
		found.Path+" is too old for this model; update it, or leave its path out of the Caddyfile and "+get)
}
