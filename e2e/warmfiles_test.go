package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// damage changes the file of a state.
type damage func(content []byte) []byte

func flipped(at func(n int) int) damage {
	return func(content []byte) []byte {
		content[at(len(content))] ^= 0x10
		return content
	}
}

func cut(at func(n int) int) damage {
	return func(content []byte) []byte { return content[:at(len(content))] }
}

// damages are what may happen to a file. Most of them make llama-server use a state that is wrong, or abort.
var damages = map[string]damage{
	"empty":                       cut(func(int) int { return 0 }),
	"cut in its header":           cut(func(int) int { return 10 }),
	"cut in its tokens":           cut(func(int) int { return 1000 }),
	"cut by half":                 cut(func(n int) int { return n / 2 }),
	"cut by a tenth":              cut(func(n int) int { return n - n/10 }),
	"cut by 4 KiB":                cut(func(n int) int { return n - 4096 }),
	"cut by a byte":               cut(func(n int) int { return n - 1 }),
	"flipped in its header":       flipped(func(int) int { return 9 }),
	"flipped in its tokens":       flipped(func(int) int { return 200 }),
	"flipped near its beginning":  flipped(func(int) int { return 20_000 }),
	"flipped in the middle":       flipped(func(n int) int { return n / 2 }),
	"flipped in its last byte":    flipped(func(n int) int { return n - 1 }),
	"4 KiB of zeros in it":        func(content []byte) []byte { clear(content[len(content)/3:][:4096]); return content },
	"followed by something":       func(content []byte) []byte { return append(content, make([]byte, 100)...) },
	"something else of that size": func(content []byte) []byte { return bytes.Repeat([]byte{'x'}, len(content)) },
}

// wantUntouched checks that a damaged state wasn't used, and that no engine has seen it: that would have aborted, or used it.
func wantUntouched(t *testing.T, s *harness.Server, what string, got harness.Turn, want string) {
	t.Helper()
	if got.Processed != got.Prompt {
		t.Errorf("%s: only %d of %d tokens of the prompt were processed", what, got.Processed, got.Prompt)
	}
	if got.Text != want {
		t.Errorf("%s: the answer is %q, want %q", what, got.Text, want)
	}
	if log := s.Log(); strings.Contains(log, "ended unexpectedly") {
		t.Errorf("%s: an engine has ended", what)
	}
}

// TestWarmFiles_DamagedWhileTheServerRuns: a file that isn't as it was written is deleted, and never reaches an engine.
func TestWarmFiles_DamagedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	begun := time.Now()
	text := talk.Fork().Say(s, "Hello").Text
	path := h.WaitState(begun)
	unload := func() { s.Post(harness.UnloadPath, harness.Fields{"instance_id": warmModel}).Want(t, http.StatusOK) }
	for name, change := range damages {
		unload()
		rewrite(t, path, change)
		begun = time.Now()
		wantUntouched(t, s, name, talk.Fork().Say(s, "Hello"), text)
		path = h.WaitState(begun)
	}
	unload()
	wantRestored(t, talk.Fork().Say(s, "Hello")) // what is whole is used
}

// TestWarmFiles_DamagedBetweenRuns is the same of files that were damaged while no server ran.
func TestWarmFiles_DamagedBetweenRuns(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	run := func() (s *harness.Server, got harness.Turn, path string) {
		begun := time.Now()
		s = startWarm(h)
		got = talk.Fork().Say(s, "Hello")
		path = h.WaitState(begun)
		s.Stop(syscall.SIGINT, harness.Patience)
		return s, got, path
	}
	_, first, path := run()
	for _, name := range []string{"empty", "cut by a byte", "flipped in the middle"} {
		rewrite(t, path, damages[name])
		var s *harness.Server
		var got harness.Turn
		s, got, path = run()
		wantUntouched(t, s, name, got, first.Text)
	}
}

func rewrite(t *testing.T, path string, change damage) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWarmFiles_OfOtherWeights: the model's file is replaced by one of the same shape, size and name, with which an engine would take the state,
// and answer nonsense.
func TestWarmFiles_OfOtherWeights(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startWarm(h)
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	begun := time.Now()
	text := talk.Fork().Say(s, "Hello").Text
	h.WaitState(begun)
	evict(s)
	h.AddRandom(warmModel, randommodel.Dense, 2)
	other := talk.Fork().Say(s, "Hello")
	wantProcessed(t, other)
	s.Stop(syscall.SIGINT, harness.Patience)

	h.AddRandom(warmModel, randommodel.Dense, 1)
	s = startWarm(h)
	if got := talk.Fork().Say(s, "Hello"); got.Text != text || other.Text == text {
		t.Errorf("the model says %q, then %q, and with other weights %q", text, got.Text, other.Text)
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	h.AddRandom(warmModel, randommodel.Dense, 3)
	s = startWarm(h)
	wantProcessed(t, talk.Fork().Say(s, "Hello"))
}

// TestWarmFiles_InAnothersPlace: whole states that were put where others belong aren't used.
func TestWarmFiles_InAnothersPlace(t *testing.T) {
	t.Parallel()
	const twin = "lmcaddy/twin"
	h := withWarm(t)
	h.AddRandom(twin, randommodel.Dense, 2)
	s := startWarm(h)
	talks := []*harness.Talk{harness.NewTalk(warmModel, harness.Words(1, systemTokens)), harness.NewTalk(twin, harness.Words(1, systemTokens))}
	var paths, texts []string
	for _, talk := range talks {
		begun := time.Now()
		texts = append(texts, talk.Fork().Say(s, "Hello").Text)
		paths = append(paths, h.WaitState(begun))
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	for _, extension := range []string{".kv", ".json"} {
		one, other := strings.TrimSuffix(paths[0], ".kv")+extension, strings.TrimSuffix(paths[1], ".kv")+extension
		between := filepath.Join(h.Work, "swapped")
		for _, err := range []error{os.Rename(one, between), os.Rename(other, one), os.Rename(between, other)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	s = startWarm(h)
	for i, talk := range talks {
		wantUntouched(t, s, talk.Model, talk.Fork().Say(s, "Hello"), texts[i])
	}
}
