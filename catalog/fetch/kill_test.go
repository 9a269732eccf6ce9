package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// child downloads a model in a process of its own. It resumes a job, or starts one.
func child(home, server, model string) int {
	tune := quick
	tune.attempts = 1000
	jobs, err := open(Options{
		Models: filepath.Join(home, "models"), State: filepath.Join(home, "downloads"), Hubs: []hub.Config{{URL: server}},
	}, tune)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer func() { _ = jobs.Close() }()
	job, err := jobs.Start(context.Background(), Request{Model: model})
	if err != nil {
		fmt.Println("start:", err)
		return 1
	}
	if job.State == AlreadyDownloaded {
		return 0
	}
	updates, stop, err := jobs.Subscribe(job.ID)
	if err != nil {
		fmt.Println("watch:", err)
		return 1
	}
	defer stop()
	for job = range updates {
	}
	if job.State != Completed {
		fmt.Println(job.State, job.Reason)
		return 1
	}
	return 0
}

var kills = flag.Int("kills", 9, "how often a download is killed")

// TestKill_NoByteBelowACheckpointIsFetchedTwice kills the process, the hub and the connections at random moments of a download.
func TestKill_NoByteBelowACheckpointIsFetchedTwice(t *testing.T) {
	t.Parallel()
	const seed = 7
	size := int64(*kills) * (3 << 19) // more than comes between two of them
	random := rand.New(rand.NewPCG(seed, seed))
	moment := func() { time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond) }
	w := newWorld(t)
	content := fakehub.Random(3, size)
	w.hub.Add("acme/big", fakehub.Files{"big-Q4_K_M.gguf": content})
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", BytesPerSecond: 1 << 20}) // else it would be over before the first
	const name = "acme/big/big-Q4_K_M.gguf"

	wasKept := false
	for kill := range *kills {
		kept := w.checkpointed(name, content)
		process := w.run("acme/big")
		w.progresses(name, kept.bytes())
		moment()
		switch kill % 3 {
		case 0:
			w.hub.CutAll()
		case 1:
			w.hub.Kill()
			if err := w.hub.Revive(); err != nil {
				t.Fatal(err)
			}
		default:
		}
		moment()
		_ = process.Process.Kill()
		_ = process.Wait()
		now := w.checkpointed(name, content)
		wasKept = wasKept || now.bytes() > 0
		t.Logf("kill %d: %d of %d bytes were there, %d are", kill, kept.bytes(), size, now.bytes())
		w.fetchedNothingOf(kept)
	}
	w.hub.Mend()
	kept := w.checkpointed(name, content)
	if !wasKept {
		t.Error("nothing was ever kept")
	}
	if process := w.run("acme/big"); process.Wait() != nil {
		t.Fatalf("the last run: %s", process.Stdout)
	}
	w.holds(name, content)
	w.fetchedNothingOf(kept)
}

// run starts a process that downloads a repository.
func (w *world) run(repo string) *exec.Cmd {
	w.Helper()
	process := exec.CommandContext(w.Context(), os.Args[0])
	process.Env = append(os.Environ(), "FETCH_TEST_HOME="+w.home, "FETCH_TEST_HUB="+w.hub.URL, "FETCH_TEST_MODEL="+w.hub.URL+"/"+repo)
	process.Stdout, process.Stderr = new(strings.Builder), os.Stderr
	if err := process.Start(); err != nil {
		w.Fatal(err)
	}
	return process
}

// progresses waits until a checkpoint has more bytes of a file, or the file is complete.
func (w *world) progresses(name string, than int64) {
	w.Helper()
	testkit.Eventually(w, "the download gets further", func() bool {
		var c checkpoint
		text, err := os.ReadFile(w.path(name + hub.CheckpointSuffix))
		if err == nil && json.Unmarshal(text, &c) == nil && c.Done.bytes() > than {
			return true
		}
		_, err = os.Stat(w.path(name))
		return err == nil
	})
}

// checkpointed returns the spans in a checkpoint, after checking that their bytes are right.
func (w *world) checkpointed(name string, want fakehub.Content) spans {
	w.Helper()
	text, err := os.ReadFile(w.path(name + hub.CheckpointSuffix))
	if err != nil {
		return nil
	}
	var c checkpoint
	if err := json.Unmarshal(text, &c); err != nil {
		w.Fatalf("the checkpoint: %v", err)
	}
	part, err := os.ReadFile(w.path(name + hub.PartSuffix))
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range c.Done {
		right := make([]byte, s.To-s.From)
		if _, err := want.ReadAt(right, s.From); err != nil && s.To != want.Size() {
			w.Fatal(err)
		}
		if int64(len(part)) < s.To || !bytes.Equal(part[s.From:s.To], right) {
			w.Errorf("the checkpoint says that bytes %d to %d are there, but they aren't", s.From, s.To)
		}
	}
	return c.Done
}

// fetchedNothingOf checks that no request since the last call was for bytes that had been downloaded.
func (w *world) fetchedNothingOf(kept spans) {
	w.Helper()
	w.hub.Quiet(w)
	for _, r := range w.hub.Requests() {
		for _, s := range kept {
			if r.From < s.To && s.From < r.To {
				w.Errorf("%s %s fetched bytes %d to %d, of which %d to %d were there", r.Path, r.Range, r.From, r.To, s.From, s.To)
			}
		}
	}
	w.hub.Forget()
}
