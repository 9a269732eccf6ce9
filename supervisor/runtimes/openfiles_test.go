//go:build unix

package runtimes

import (
	"errors"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/openfiles/openfilestest"
)

// TestFind_WithoutFileDescriptors: a runtime that can't be read isn't missing, and no other is used instead.
func TestFind_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		bin := t.TempDir()
		t.Setenv("PATH", bin)
		executable(t, bin, "llama-server")
		dir := t.TempDir()
		s := openTest(dir)
		name := install(t, dir, 11669, "cpu")
		must(t, s.Select(name))
		without(func() {
			if found, err := s.Find(LlamaCpp, ""); !openfiles.AreExhausted(err) || errors.Is(err, ErrNone) {
				t.Errorf("Find gives %v, %v", found, err)
			}
			if list, err := s.List(); !openfiles.AreExhausted(err) {
				t.Errorf("List gives %v, %v", list, err)
			}
		})
		found, err := s.Find(LlamaCpp, "")
		must(t, err)
		same(t, "afterwards", found.Name, name)
	})
}
