package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestMain can also be a process that stores turns until it is killed: see TestKill.
func TestMain(m *testing.M) {
	if where := os.Getenv("STORE_TEST_PUT"); where != "" {
		os.Exit(putForEver(where))
	}
	code := m.Run()
	server.stop()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// backend is a kind of database to test.
type backend struct {
	name string
	at   func(testing.TB) Options // an empty one, that is there as long as the test
}

var backends = []backend{
	{"sqlite", func(t testing.TB) Options { return Options{Path: filepath.Join(t.TempDir(), "lmcaddy.db")} }},
	{"postgres", func(t testing.TB) Options { return Options{URL: server.schema(t)} }},
}

// eachBackend runs a test on a new database of each kind.
func eachBackend(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	eachPlace(t, func(t *testing.T, at Options) { test(t, open(t, at)) })
}

func eachPlace(t *testing.T, test func(t *testing.T, at Options)) {
	t.Helper()
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b.at(t))
		})
	}
}

func open(t testing.TB, at Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	s.writer.patience = 5 * time.Minute // what a test writes at once may take a busy machine longer than a client waits
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var lastID atomic.Int64

// turn returns a turn with a new ID that continues parent, which may be nil.
func turn(parent *Turn, text string) *Turn {
	t := &Turn{
		ID:     fmt.Sprintf("resp_%048x", lastID.Add(1)),
		Model:  "lmcaddy/tinychat",
		Status: Completed,
		In:     []translate.Item{message(translate.RoleUser, text)},
		Out:    []translate.Item{message(translate.RoleAssistant, "You said: "+text)},
	}
	if parent != nil {
		t.Parent, t.Owner = parent.ID, parent.Owner
	}
	return t
}

func message(role translate.Role, text string) translate.Item {
	return translate.Item{Kind: translate.ItemMessage, Role: role, Parts: []translate.Part{{Text: text}}}
}

// withImage adds an image to the user's message.
func (t *Turn) withImage(data string) *Turn {
	t.In[0].Parts = append(t.In[0].Parts, translate.Part{Media: &translate.Media{Type: "image/png", Data: []byte(data)}})
	return t
}

// stored stores turns and returns the last.
func stored(t testing.TB, s *Store, turns ...*Turn) *Turn {
	t.Helper()
	for _, turn := range turns {
		must(t, s.Put(t.Context(), turn))
	}
	return turns[len(turns)-1]
}

// texts returns the user's messages in a conversation.
func texts(t testing.TB, s *Store, owner, id string) []string {
	t.Helper()
	chain, err := s.Chain(t.Context(), owner, id)
	must(t, err)
	said := make([]string, len(chain))
	for i, turn := range chain {
		said[i] = turn.In[0].Parts[0].Text
	}
	return said
}

// rows returns the number of rows of a table, optionally with a condition.
func rows(t testing.TB, s *Store, tableAndWhere string) (n int) {
	t.Helper()
	must(t, s.db.read(t.Context(), func(tx *tx) error {
		_, err := tx.row("SELECT count(*) FROM "+tableAndWhere, nil, &n)
		return err
	}))
	return n
}

// sound checks the consistency of the tables.
func sound(t testing.TB, s *Store) {
	t.Helper()
	stored := rows(t, s, "turns")
	var n int
	must(t, s.db.read(t.Context(), func(tx *tx) error { return second(tx.row(selectNumber, nil, &n)) }))
	if n != stored {
		t.Errorf("counters say %d turns, there are %d", n, stored)
	}
	for what, where := range map[string]string{
		"families that miscount": "families f WHERE turns <> (SELECT count(*) FROM turns t WHERE t.family = f.id)",
		"families of wrong age": `families f WHERE newest <> 0 AND
			newest <> (SELECT max(created) FROM turns t WHERE t.family = f.id)`,
		"turns without a parent": `turns t WHERE parent IS NOT NULL AND
			NOT EXISTS (SELECT 1 FROM turns p WHERE p.id = t.parent AND p.family = t.family AND p.depth = t.depth - 1)`,
		"turns without a family":  "turns t WHERE NOT EXISTS (SELECT 1 FROM families f WHERE f.id = t.family)",
		"hidden turns for nobody": "turns t WHERE hidden AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.parent = t.id)",
		"blobs that miscount":     "blobs b WHERE refs <> (SELECT count(*) FROM turns t WHERE t.images LIKE '%' || b.hash || '%')",
	} {
		if n := rows(t, s, where); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}
