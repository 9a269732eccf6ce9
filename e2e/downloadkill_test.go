package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// kept is a checkpoint's record of a file, and its time.
type kept struct {
	at    time.Time
	spans [][2]int64
}

// checkpoint reads the record of the model's file during the download; false if there is none.
func checkpoint(t *testing.T, home *harness.Home) (kept, bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home.Dir, filepath.FromSlash(tinyPath)+".part.json"))
	if err != nil {
		return kept{}, false
	}
	var c struct {
		Done []struct{ From, To int64 } `json:"done"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("the checkpoint: %v: %s", err, text)
	}
	k := kept{at: time.Now()}
	for _, s := range c.Done {
		k.spans = append(k.spans, [2]int64{s.From, s.To})
	}
	return k, len(k.spans) > 0
}

// TestDownload_KilledAgainAndAgain breaks the connections, the hub and lmcaddy at random moments of one download. The
// download resumes by itself, and doesn't request bytes again that a checkpoint has recorded.
func TestDownload_KilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const seed, breaks = 11, 7
	random := rand.New(rand.NewPCG(seed, seed))
	h := newHub(t, 640<<10)
	config := h.config()
	config.Port = harness.FreePort(t)
	home := withEngine(t)
	s := harness.Start(home, config)
	id := download(s, tinyRepo)
	var checkpoints []kept
	step := int64(len(harness.ShippedModel(t))) / (breaks + 1)
	for i := range int64(breaks) {
		moment := i*step + random.Int64N(step)
		awaitJob(s, id, "enough has come for the next break", hasBytes(moment))
		switch i % 3 {
		case 0:
			s.Kill()
			s = harness.Start(home, config)
		case 1:
			h.tell("cut", struct{}{})
		default:
			h.restart()
		}
		if k, ok := checkpoint(t, home); ok {
			checkpoints = append(checkpoints, k)
		}
	}
	awaitCompleted(s, id)
	wantWhole(s)
	if len(checkpoints) < 2 {
		t.Fatalf("only %d checkpoints were seen", len(checkpoints))
	}
	resumed := 0
	for _, r := range h.requests() {
		for _, k := range checkpoints {
			if !r.At.After(k.at) {
				continue
			}
			for _, span := range k.spans {
				if r.From < span[1] && span[0] < r.To {
					t.Errorf("%s is asked for again (%d to %d), though of it %v was there", r.Range, r.From, r.To, span)
				}
			}
		}
		if r.From > 0 {
			resumed++
		}
	}
	if resumed < breaks/2 { // the first may come before there is anything to resume
		t.Errorf("of %d requests, %d go on where others ended", len(h.requests()), resumed)
	}
	s.Post(harness.LoadPath, harness.Fields{"model": tiny}).Want(t, http.StatusOK)
	if a := s.Chat(harness.Ask(capital).With("model", tiny)); a.Content != paris {
		t.Errorf("it says %q", a.Content)
	}
}
