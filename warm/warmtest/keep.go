// Package warmtest helps tests to use package warm without an engine.
package warmtest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/warm"
)

// MakeRoom has a store take the disk for nearly empty, however full that of the machine is. It is called before the store is used.
func MakeRoom(s *warm.Store) {
	s.SetDisk(func() (free, total int64, err error) { return 1 << 40, 1 << 40, nil })
}

// Keep puts a state of a model into a store, as if an engine had just written it. Keep chooses the fields that
// st leaves out, except the owner and the conversation.
func Keep(t testing.TB, s *warm.Store, model string, st prefix.State) {
	t.Helper()
	MakeRoom(s)
	if st.Prompt == nil {
		m := prefix.New(0)
		m.Message([]byte(rand.Text()))
		st.Prompt = m.Chain()
	}
	st.Tokens = max(1, st.Tokens)
	st.Bytes = max(1, st.Bytes)
	weights := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(weights, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	shelf, err := s.Shelf(warm.Print{Model: model, Files: []string{weights}, Engine: "engine", Build: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	if err := os.WriteFile(filepath.Join(shelf.Folder(), "state"), make([]byte, st.Bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := shelf.Put("state", st); err != nil {
		t.Fatal(err)
	}
}
