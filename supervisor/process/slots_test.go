package process

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/warm"
)

func TestKeeper_Admits(t *testing.T) {
	t.Parallel()
	store, err := warm.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		hurried  bool
		save     time.Duration // of a megabyte, which 1,000 tokens have; 0: none was saved
		restore  time.Duration // of as much; 0: none was restored
		perToken time.Duration
		want     bool
	}{
		"unknown":                     {true, 0, 0, 0, true},
		"quick":                       {true, 10 * time.Millisecond, 0, time.Millisecond, true},
		"a quarter of the processing": {true, 245 * time.Millisecond, 0, time.Millisecond, true},
		"more than that":              {true, 255 * time.Millisecond, 0, time.Millisecond, false},
		"nobody waits":                {false, 255 * time.Millisecond, 0, time.Millisecond, true},
		"two seconds":                 {true, 1990 * time.Millisecond, 0, time.Second, true},
		"more than two seconds":       {true, 2010 * time.Millisecond, 0, time.Second, false},
		"it wouldn't be restored":     {false, time.Second, 0, time.Millisecond, false},
		"reading was faster":          {false, time.Second, 700 * time.Millisecond, time.Millisecond, true},
		"reading was slower":          {false, 10 * time.Millisecond, time.Second, time.Millisecond, false},
		"and somebody waits":          {true, 10 * time.Millisecond, time.Second, time.Millisecond, false},
	} {
		shelf, err := store.Shelf(warm.Print{Model: name, Files: []string{file}})
		if err != nil {
			t.Fatal(err)
		}
		shelf.Processed(1000, 1000*tt.perToken)
		if tt.save > 0 {
			shelf.Saved(1000, 1e6, tt.save)
		}
		if tt.restore > 0 {
			shelf.Restored(1e6, tt.restore)
		}
		k := &Slots{Shelf: shelf, Settling: new(settling), Log: slog.New(slog.DiscardHandler)}
		job := &saveJob{ctx: t.Context(), hurried: tt.hurried}
		job.state.Tokens, job.state.PromptTokens = 1000, 1000
		if got := k.admits(job); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
		shelf.Close()
	}
}

// Failures are told once for each launch.
func TestKeeper_TellsOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	k := &Slots{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		k.failed(io.EOF)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}
