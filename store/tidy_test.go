package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// isGone reports whether no text is left anywhere in the files of a database.
func isGone(t *testing.T, path string, texts ...string) bool {
	t.Helper()
	all := contentOf(t, path)
	return !slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(all, []byte(text)) })
}

// onDisk returns the texts that are somewhere in the files of a database.
func onDisk(t *testing.T, path string, texts []string) (found []string) {
	t.Helper()
	all := contentOf(t, path)
	for _, text := range texts {
		if bytes.Contains(all, []byte(text)) {
			found = append(found, text)
		}
	}
	return found
}

// contentOf reads all files of a database.
func contentOf(t *testing.T, path string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	must(t, err)
	for _, f := range files {
		content, err := os.ReadFile(f)
		must(t, err)
		all = append(all, content...)
	}
	return all
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// marked returns a turn with a mark in its text and its image, which fill many pages or a part of one.
func marked(parent *Turn, mark string, size int) *Turn {
	return turn(parent, mark+strings.Repeat("x", size)+mark).withImage(mark + " in an image" + strings.Repeat("y", size))
}

// TestSQLite_WhatIsDeletedIsGone searches the files of an open store.
func TestSQLite_WhatIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	r := rand.New(rand.NewPCG(1, 2))
	var deleted, kept []*Turn
	var gone, stay []string
	for n := range 200 {
		mark := fmt.Sprintf("mark-%d-%x", n, r.Uint64())
		made := marked(nil, mark, []int{10, 300, 1500, 5000, 60_000}[r.IntN(5)])
		stored(t, s, made)
		if r.IntN(2) == 0 {
			deleted, gone = append(deleted, made), append(gone, mark)
		} else {
			kept, stay = append(kept, made), append(stay, mark)
		}
	}
	if found := onDisk(t, at.Path, gone); len(found) != len(gone) {
		t.Fatalf("before they are deleted %d of %d are found", len(found), len(gone))
	}
	for _, turn := range deleted {
		must(t, s.Delete(t.Context(), "", turn.ID))
	}
	testkit.Eventually(t, "deleted texts are gone", func() bool { return isGone(t, at.Path, gone...) })
	if found := onDisk(t, at.Path, stay); len(found) != len(stay) {
		t.Errorf("%d of %d are left of those that weren't deleted", len(found), len(stay))
	}
	for _, turn := range kept {
		must(t, second(s.Get(t.Context(), "", turn.ID)))
	}
	sound(t, s)
}

// TestSQLite_WhatIsContinuedIsGoneWithTheLast: the text of a turn is needed until the turns that continue it are deleted.
func TestSQLite_WhatIsContinuedIsGoneWithTheLast(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	root := marked(nil, "first-words", 5000)
	leaf := marked(root, "last-words", 100)
	stored(t, s, root, leaf)
	must(t, s.Delete(t.Context(), "", root.ID))
	if said := texts(t, s, "", leaf.ID); len(said) != 2 || !strings.HasPrefix(said[0], "first-words") {
		t.Errorf("the rest of the conversation: %.100q", said)
	}
	must(t, s.Delete(t.Context(), "", leaf.ID))
	testkit.Eventually(t, "both are gone", func() bool { return isGone(t, at.Path, "first-words", "last-words") })
}

// TestSQLite_AReaderDelaysTidying only while it reads.
func TestSQLite_AReaderDelaysTidying(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	made := stored(t, s, marked(nil, "secret", 5000))
	must(t, s.db.read(t.Context(), func(tx *tx) error {
		return tx.each("SELECT id FROM turns UNION ALL SELECT 'another'", nil, func(func(...any) error) error {
			if made == nil {
				return nil
			}
			err := s.Delete(context.Background(), "", made.ID)
			if err == nil {
				err = s.Put(context.Background(), turn(nil, "writing goes on"))
			}
			made = nil
			return err
		})
	}))
	testkit.Eventually(t, "it is gone", func() bool { return isGone(t, at.Path, "secret") })
}

// TestSQLite_TidyingEnds: the writer tidies until a reader of old data has ended, and then no more.
func TestSQLite_TidyingEnds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := openSQLite(ctx, backends[0].at(t).Path, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, db.close()) }()
	must(t, migrate(ctx, db))
	reader, err := db.reading.BeginTx(ctx, nil)
	must(t, err)
	var n int
	must(t, reader.QueryRowContext(ctx, "SELECT count(*) FROM turns").Scan(&n))
	must(t, db.transact(ctx, false, func(t *tx) error {
		t.deletes = true
		_, err := t.exec("UPDATE counters SET turns = turns")
		return err
	}))
	if pause := db.tidy(); pause != tidyRetry {
		t.Errorf("while a reader needs the log, the next try is in %v, not %v", pause, tidyRetry)
	}
	must(t, reader.Rollback())
	if pause := db.tidy(); pause != 0 {
		t.Errorf("when nothing is left to do, the next try is in %v", pause)
	}
	if db.untidy {
		t.Error("it is still untidy")
	}
}

func TestSQLite_ReturnsTheRoomOfWhatIsPruned(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	const turns, each = 300, 20 << 10
	for n := range turns {
		stored(t, s, turn(nil, fmt.Sprint(n)+strings.Repeat("x", each)))
	}
	testkit.Eventually(t, "it is large", func() bool { return sizeOf(t, at.Path)+sizeOf(t, at.Path+"-wal") > turns*each })
	removed, err := s.Prune(t.Context(), Bounds{Number: 10})
	if err != nil || removed != turns-10 {
		t.Fatalf("%d were removed, %v", removed, err)
	}
	testkit.Eventually(t, "it is small", func() bool { return sizeOf(t, at.Path) < 2<<20 && sizeOf(t, at.Path+"-wal") == 0 })
	stored(t, s, turn(nil, "afterwards"))
	sound(t, s)
}
