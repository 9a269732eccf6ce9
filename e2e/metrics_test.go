package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// withMetrics is a Caddyfile whose site serves the metrics on /metrics.
func withMetrics(c harness.Config) string {
	return strings.Replace(c.String(), "\tlm_api {", "\tmetrics /metrics\n\tlm_api {", 1)
}

func startWithMetrics(t *testing.T, c harness.Config) *harness.Server {
	t.Helper()
	home := withTwo(t)
	return home.Launch(c.Port, "run", "--config", home.WriteFile("Caddyfile", withMetrics(c)))
}

// samples returns our samples in a scrape, by name and labels.
func samples(t testing.TB, text string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, "lm_") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[name] = n
	}
	return all
}

func scrape(s *harness.Server) map[string]float64 {
	s.T.Helper()
	return samples(s.T, s.Get("/metrics").Want(s.T, http.StatusOK).Body)
}

// getAdmin requests a path of the admin endpoint.
func getAdmin(s *harness.Server, path string) string {
	s.T.Helper()
	socket := s.RunFile("admin.sock")
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Get("http://127.0.0.1" + path)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.T.Fatalf("%s: status %d, %v: %s", path, resp.StatusCode, err, body)
	}
	return string(body)
}

// wantSamples waits until a scrape has these samples.
func wantSamples(s *harness.Server, when string, want map[string]float64) {
	s.T.Helper()
	var got map[string]float64
	defer func() {
		if s.T.Failed() {
			s.T.Logf("%s (-want +got):\n%s", when, cmp.Diff(want, got))
		}
	}()
	harness.Eventually(s.T, harness.Patience, when+", the metrics are right", func() bool {
		all := scrape(s)
		got = map[string]float64{}
		for name := range want {
			if value, ok := all[name]; ok {
				got[name] = value
			}
		}
		return cmp.Equal(want, got)
	})
}

func of(series, model string) string { return series + `{model="` + model + `"}` }

func because(series, model, reason string) string {
	return series + `{model="` + model + `",reason="` + reason + `"}`
}

func TestMetrics_TellOfLoadsEvictionsAndCrashes(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t), LM: []string{"max_loaded 1"}}
	s := startWithMetrics(t, config)

	for name, value := range scrape(s) {
		if strings.Contains(name, "model=") || name == "lm_memory_budget_bytes" && value <= 0 {
			t.Errorf("before anything was loaded: %s is %v", name, value)
		}
	}
	s.Post(harness.ChatPath, harness.Ask(capital).With("model", "no/such-model")).Want(t, http.StatusNotFound)
	s.Chat(harness.Ask(capital))
	wantSamples(s, "after a load", map[string]float64{
		of("lm_loads_total", harness.Model): 1, of("lm_load_seconds_count", harness.Model): 1, of("lm_loaded", harness.Model): 1,
		of("lm_in_flight", harness.Model): 0, of("lm_waiting", harness.Model): 0, of("lm_crashes_total", harness.Model): 0,
		because("lm_evictions_total", harness.Model, "room"): 0,
	})
	harness.Eventually(t, harness.Patience, "the engine's memory is told", func() bool {
		all := scrape(s)
		return all[of("lm_resident_memory_bytes", harness.Model)] > 1<<20 && all[of("lm_memory_claim_bytes", harness.Model)] > 1<<20 &&
			all[of("lm_load_seconds_sum", harness.Model)] > 0
	})

	s.Chat(harness.Ask(capital).With("model", other))
	want := map[string]float64{
		because("lm_evictions_total", harness.Model, "room"): 1, of("lm_loaded", harness.Model): 0, of("lm_resident_memory_bytes", harness.Model): 0,
		of("lm_loads_total", harness.Model): 1, of("lm_loads_total", other): 1, of("lm_loaded", other): 1, of("lm_in_flight", other): 0,
	}
	wantSamples(s, "after an eviction", want)
	for name := range scrape(s) {
		if strings.Contains(name, "no/such-model") {
			t.Errorf("a request's text is in the metrics: %s", name)
		}
	}

	config.LM = append(config.LM, "list_models all")
	if r := s.Reload(withMetrics(config)); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	wantSamples(s, "after a reload", want)
	admin := samples(t, getAdmin(s, "/metrics"))
	for name, value := range want {
		if got, ok := admin[name]; !ok || got != value {
			t.Errorf("the admin endpoint's %s is %v (%v), want %v", name, got, ok, value)
		}
	}

	s.Engine().Kill(t)
	wantSamples(s, "after a crash", map[string]float64{of("lm_crashes_total", other): 1, of("lm_failures", other): 1, of("lm_loaded", other): 0})
	s.WaitNoEngine(gone)
	scrape(s)
	getAdmin(s, "/metrics")
	getAdmin(s, "/lm/ps")
	if engines := s.Engines(); len(engines) > 0 {
		t.Errorf("a scrape has woken a model: %v", engines)
	}
	harness.Eventually(t, harness.Patience, "a model that works has not failed", func() bool {
		s.Chat(harness.Ask(capital).With("model", other))
		return scrape(s)[of("lm_failures", other)] == 0
	})
	wantSamples(s, "after that", map[string]float64{of("lm_loads_total", other): 2, of("lm_crashes_total", other): 1})
}

func TestMetrics_TellWhoWaitsAndWhyModelsWent(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t), Engine: []string{"parallel 1"}}
	s := startWithMetrics(t, config)
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	giveUp := s.GoUntil(harness.ChatPath, harness.Ask(capital))
	wantSamples(s, "with a request that is answered and one that waits", map[string]float64{
		of("lm_in_flight", harness.Model): 1, of("lm_slots", harness.Model): 1, of("lm_waiting", harness.Model): 1, of("lm_loads_total", harness.Model): 1,
	})
	giveUp()
	wantSamples(s, "when nobody waits any more", map[string]float64{of("lm_in_flight", harness.Model): 1, of("lm_waiting", harness.Model): 0})
	engine.Resume(t)
	st.Cancel()
	wantSamples(s, "when the client has gone", map[string]float64{of("lm_in_flight", harness.Model): 0})

	s.Post(harness.UnloadPath, harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
	wantSamples(s, "after an unload", map[string]float64{
		because("lm_unloads_total", harness.Model, "unload"): 1, because("lm_evictions_total", harness.Model, "ttl"): 0, of("lm_loaded", harness.Model): 0,
	})
	s.Chat(harness.Ask(capital).With("model", other).With("ttl", 1))
	wantSamples(s, "after its time to live", map[string]float64{because("lm_evictions_total", other, "ttl"): 1, of("lm_loaded", other): 0})
}

func TestMetrics_CountAHungEngineAsACrash(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startWithMetrics(t, harness.Config{Port: harness.FreePort(t), LM: []string{"stall_timeout 3s"}})
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	st.WaitEnd()
	if st.IsWhole() {
		t.Error("the stream of an engine that hangs was whole")
	}
	harness.Eventually(t, harness.Patience, "the engine that hangs is gone", func() bool { return !engine.Alive() })
	wantSamples(s, "after an engine hung", map[string]float64{
		of("lm_crashes_total", harness.Model): 1, of("lm_loaded", harness.Model): 0, of("lm_in_flight", harness.Model): 0,
		because("lm_unloads_total", harness.Model, "unload"): 0,
	})
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after an engine hung: %q", a.Content)
	}
}
