package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// overview is the output of `lmcaddy ps --json`.
type overview struct {
	Time      time.Time
	Instances []struct {
		ID            string
		Status        string
		Renewing      bool
		InUse         int       `json:"in_use"`
		Slots         int       `json:"slots"`
		ContextLength int       `json:"context_length"`
		Memory        int64     `json:"memory_bytes"`
		LoadedAt      time.Time `json:"loaded_at"`
		LastUsed      time.Time `json:"last_used"`
		Expires       time.Time `json:"expires_at"`
		TTL           float64   `json:"ttl_seconds"`
		PID           int       `json:"pid"`
		Version       string    `json:"engine_version"`
	}
	Failing []struct {
		Model  string
		Count  int `json:"failures"`
		Reason string
	}
	Waiting map[string]int
}

func ps(s *harness.Server) overview {
	s.T.Helper()
	r := s.Command("ps", "--json")
	var o overview
	if err := json.Unmarshal([]byte(r.Output), &o); r.Status != 0 || err != nil {
		s.T.Fatalf("ps --json: status %d, %v: %s", r.Status, err, r.Output)
	}
	return o
}

// waitIdle waits until the only instance is idle.
func waitIdle(s *harness.Server) (o overview) {
	s.T.Helper()
	harness.Eventually(s.T, harness.Patience, "the model is idle", func() bool {
		o = ps(s)
		return len(o.Instances) == 1 && o.Instances[0].Status == "ready" && o.Instances[0].InUse == 0
	})
	return o
}

func TestPS_WithoutAServerSaysSo(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	wantNone := func(when string) {
		t.Helper()
		for _, args := range [][]string{{"ps"}, {"ps", "--json"}} {
			r := home.Command(args...)
			if r.Status != 1 || !strings.Contains(r.Output, "no lmcaddy seems to be running on the home folder "+home.Dir) {
				t.Errorf("%s: %v: status %d: %s", when, args, r.Status, r.Output)
			}
		}
	}
	wantNone("never started")
	if left, err := os.ReadDir(home.Dir + "/run"); err == nil {
		t.Errorf("asking has made the run folder: %v", left)
	}
	s := harness.Start(home, harness.Config{})
	ps(s)
	s.Kill()
	wantNone("after a crash, which leaves the socket")
}

func TestPS_ShowsWhatIsLoadedAndWhenItGoes(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t), LM: []string{"idle_ttl 10m"}}
	s := harness.Start(harness.NewHome(t), config)
	if r := s.Command("ps"); r.Status != 0 || !strings.Contains(r.Output, "No model is loaded.") {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
	if len(s.Engines()) > 0 {
		t.Error("asking has woken a model")
	}

	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	o := ps(s)
	if len(o.Instances) != 1 {
		t.Fatalf("%+v", o)
	}
	busy := o.Instances[0]
	if busy.ID != harness.Model || busy.Status != "ready" || busy.InUse != 1 || busy.Slots < 1 || busy.PID != engine.PID || !busy.Expires.IsZero() ||
		busy.TTL != 600 || busy.ContextLength < 256 || busy.Memory <= 0 || busy.LoadedAt.IsZero() || busy.Version == "" {
		t.Errorf("in use: %+v", busy)
	}
	fields := strings.Fields(row(t, s, harness.Model))
	if got := strings.Join(fields[:3], " "); got != harness.Model+" ready 1/"+strconv.Itoa(busy.Slots) {
		t.Errorf("the row begins with %q", got)
	}
	engine.Resume(t)

	ended := time.Now()
	st.Cancel()
	idle := waitIdle(s).Instances[0]
	if idle.LastUsed.Before(ended) || idle.Expires.Sub(idle.LastUsed) != 10*time.Minute || idle.PID != engine.PID || !idle.LoadedAt.Equal(busy.LoadedAt) {
		t.Errorf("the request ended after %s: %+v", ended, idle)
	}
	if text := row(t, s, harness.Model); !strings.Contains(text, " in 9m5") && !strings.Contains(text, " in 10m") {
		t.Errorf("ten minutes are left: %s", text)
	}

	config.LM = []string{"idle_ttl 0"} // which doesn't affect the process
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	harness.Eventually(t, harness.Patience, "the new time to live counts", func() bool {
		in := ps(s).Instances
		return len(in) == 1 && in[0].Expires.IsZero() && in[0].TTL == 0 && in[0].PID == engine.PID
	})
	if text := row(t, s, harness.Model); !strings.Contains(text, "never") {
		t.Errorf("it never goes: %s", text)
	}
}

// row is the line of an instance in the table.
func row(t *testing.T, s *harness.Server, id string) string {
	t.Helper()
	r := s.Command("ps")
	if r.Status != 0 || !strings.HasPrefix(r.Output, "INSTANCE ") {
		t.Fatalf("ps: status %d: %s", r.Status, r.Output)
	}
	for line := range strings.Lines(r.Output) {
		if strings.HasPrefix(line, id+" ") {
			return line
		}
	}
	t.Fatalf("%s isn't in:\n%s", id, r.Output)
	return ""
}

func TestPS_ShowsWhatWaitsForNewSettings(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t), Engine: []string{"parallel 1"}}
	s := harness.Start(harness.NewHome(t), config)
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	old := s.Engine()
	old.Pause(t)
	config.Engine = []string{"parallel 3"}
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	harness.Eventually(t, harness.Patience, "the busy instance has a restart pending", func() bool {
		in := ps(s).Instances
		return len(in) == 1 && in[0].Renewing && in[0].PID == old.PID && in[0].Slots == 1
	})
	if text := row(t, s, harness.Model); !strings.Contains(text, "restart pending") {
		t.Error(text)
	}
	old.Resume(t)
	st.Cancel()
	harness.Eventually(t, harness.Patience, "it was started again", func() bool {
		in := ps(s).Instances
		return len(in) == 1 && in[0].Status == "ready" && !in[0].Renewing && in[0].PID != old.PID && in[0].Slots == 3
	})
}

func TestPS_ShowsWhatFailsAndWhy(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t), Engine: []string{"args --no-such-flag"}}
	s := harness.Start(harness.NewHome(t), config)
	s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, http.StatusServiceUnavailable)
	o := ps(s)
	if len(o.Failing) != 1 || o.Failing[0].Model != harness.Model || o.Failing[0].Count != 1 || !strings.Contains(o.Failing[0].Reason, "--no-such-flag") {
		t.Errorf("%+v", o)
	}
	if r := s.Command("ps"); !strings.Contains(r.Output, harness.Model+" failed 1 time in a row") || !strings.Contains(r.Output, "No model is loaded.") {
		t.Error(r.Output)
	}
}
