package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
	"github.com/lmcaddy/lmcaddy/warm/warmtest"
)

// scrape is a registry's text, without what isn't ours.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var ours strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "lm_") || strings.HasPrefix(line, "# HELP lm_") || strings.HasPrefix(line, "# TYPE lm_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

// fixed collects from what doesn't change.
type fixed struct {
	overview supervisor.Overview
	counts   map[string]supervisor.Counts
}

func (f fixed) Describe(ch chan<- *prometheus.Desc) { collector{}.Describe(ch) }
func (f fixed) Collect(ch chan<- prometheus.Metric) {
	collect(ch, f.overview, f.counts)
	collectUsed(ch, func(each func(owner, model string, used store.UsageCount)) {
		each("", "a/idle", store.UsageCount{Requests: 1, TokensIn: 2, TokensOut: 3})
		each("WYVCC6L4", "a/idle", store.UsageCount{Requests: 4, TokensIn: 5, TokensOut: 6})
		each("user:ann\xff", "gone/\xff", store.UsageCount{Requests: 7})
	})
	collectSwaps(ch, f.counts)
	collectEngines(ch, f.overview.Instances)
	collectTraffic(ch, fixedTraffic())
	figures := fixedFigures()
	figures.collect(ch)
	collectMCP(ch, []servers.Count{{Server: "files", OK: 1, Errors: 2, Failures: 3, Seconds: 4.5, Connections: 1}, {}})
	collectWarm(ch, []warm.Counts{
		{Model: "a/idle", Saves: 1, Restores: 2, Misses: 3, Refused: 4, Spared: 5, Written: 6, Read: 7, States: 8, Held: 9},
		{Model: "gone/\xff", States: 1, Held: 2},
	})
}

// histogramOf has an observation of each size.
func histogramOf(bounds []float64, sizes ...float64) histogram.Histogram {
	h := histogram.New(bounds)
	for _, size := range sizes {
		h.Observe(size)
	}
	return h
}

func fixedTraffic() record.Traffic {
	some := record.ModelTraffic{
		PromptTokens: 100, CachedTokens: 60, GeneratedTokens: 30,
		Duration: histogramOf(histogram.Waits, 2), FirstToken: histogramOf(histogram.Waits, 0.3, 700),
		PerToken: histogramOf(histogram.Tokens, 0.02), Queue: histogramOf(histogram.Waits, 0, 0.01, 4),
	}
	none := record.ModelTraffic{
		Duration: histogram.New(histogram.Waits), FirstToken: histogram.New(histogram.Waits),
		PerToken: histogram.New(histogram.Tokens), Queue: histogram.New(histogram.Waits),
	}
	return record.Traffic{
		Requests: map[record.RequestKey]uint64{
			{Model: "a/idle", Dialect: "openai", Outcome: "ok"}: 1, {Model: "a/idle", Dialect: "anthropic", Outcome: "queue_full"}: 2,
			{Model: "", Dialect: "native", Outcome: "model_not_found"}: 3, {Model: "gone/\xff", Dialect: "v0", Outcome: "cancelled"}: 4,
		},
		Models: map[string]record.ModelTraffic{"a/idle": some, "gone/\xff": none},
		Errors: map[record.ErrorKey]uint64{{Dialect: "openai", Kind: "invalid_api_key"}: 5},
	}
}

func fixedFigures() serverFigures {
	return serverFigures{
		version: "v1", goVersion: "go1", began: time.Unix(1_700_000_000, 500_000_000), downloads: map[fetch.State]int{fetch.Downloading: 1, fetch.Completed: 2}, left: 7,
		latency: store.Latency{Reads: histogramOf(histogram.Queries, 0.002), Writes: histogramOf(histogram.Queries, 0.02, 60), FailedWrites: 1},
	}
}

func TestCollector_Golden(t *testing.T) {
	t.Parallel()
	loads := histogram.New(histogram.Loads)
	loads.Counts[1], loads.Sum = 1, 1.5
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(fixed{everything(), map[string]supervisor.Counts{
		"a/idle": {Loads: loads, Phases: map[supervisor.Phase]histogram.Histogram{
			supervisor.PhaseLaunch: histogramOf(histogram.Waits, 0.02), supervisor.PhaseLoad: histogramOf(histogram.Waits, 1.48),
		}},
		"gone/\xff": {Loads: histogram.New(histogram.Loads), Crashes: 2, Stops: map[schedule.Reason]uint64{
			schedule.ForRoom: 3, schedule.ForIdleness: 4, schedule.ForRequest: 5, schedule.ForSettings: 6, schedule.ForSignal: 8, schedule.ForSilence: 1,
		}},
	}})
	testkit.Golden(t, "testdata/metrics.golden", []byte(scrape(t, registry)))
}

// appWith is a provisioned app on a home, in a configuration of its own, with that configuration's registry.
func appWith(t *testing.T, s *config.Settings) (*App, *prometheus.Registry) {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{AppsRaw: caddy.ModuleMap{"lm": caddyconfig.JSON(s, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ctx.App("lm")
	if err != nil {
		t.Fatal(err)
	}
	a := got.(*App)
	t.Cleanup(func() {
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return a, ctx.GetMetricsRegistry()
}

// modelsHome is a home with two models, which are one file.
func modelsHome(t *testing.T) home.Dir {
	t.Helper()
	from, err := filepath.Abs("../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	dir := home.Dir(t.TempDir())
	for _, name := range []string{"one", "two"} {
		to := filepath.Join(dir.Models(), "test", name, "model.gguf")
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func acquire(t *testing.T, n *node.Node, name string) *supervisor.Lease {
	t.Helper()
	target, err := n.Names.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := n.Loads.Acquire(t.Context(), target, node.Demand{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// values are the samples of a scrape whose names are asked for.
func values(t *testing.T, registry *prometheus.Registry, names ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(scrape(t, registry)) {
		sample, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, name := range names {
			if strings.HasPrefix(sample, name+"{") {
				got[sample] = value
			}
		}
	}
	return got
}

// Configurations change the log of the whole process, so this test isn't parallel.
func TestMetrics_OutliveAReload(t *testing.T) {
	fake := fakeengine.Install(t, nil)
	settings := &config.Settings{Home: string(modelsHome(t)), MaxLoaded: 1, Engines: config.Engines{"llama_server": {Path: fake.Path, Parallel: 2, Sandbox: new(bool)}}}
	first, before := appWith(t, settings)
	if text := scrape(t, before); text != "" {
		t.Errorf("before the start:\n%s", text)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if text := scrape(t, before); !strings.Contains(text, "lm_memory_budget_bytes ") || strings.Contains(text, "model=") {
		t.Errorf("before a request:\n%s", text)
	}
	n := first.running()
	warmtest.Keep(t, n.Warm, "test/one", prefix.State{Bytes: 7})
	acquire(t, n, "test/one").Release()
	lease := acquire(t, n, "test/two") // for which the first has to go

	second, after := appWith(t, settings)
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, registry := range map[string]*prometheus.Registry{"old": before, "new": after} {
		want := map[string]string{
			`lm_loads_total{model="test/one"}`: "1", `lm_loads_total{model="test/two"}`: "1",
			`lm_load_seconds_count{model="test/one"}`: "1", `lm_load_seconds_count{model="test/two"}`: "1",
			`lm_evictions_total{model="test/one",reason="gpu"}`: "0", `lm_evictions_total{model="test/one",reason="room"}`: "1", `lm_evictions_total{model="test/one",reason="ttl"}`: "0",
			`lm_evictions_total{model="test/two",reason="gpu"}`: "0", `lm_evictions_total{model="test/two",reason="room"}`: "0", `lm_evictions_total{model="test/two",reason="ttl"}`: "0",
			`lm_loaded{model="test/one"}`: "0", `lm_loaded{model="test/two"}`: "1",
			`lm_slots{model="test/one"}`: "0", `lm_slots{model="test/two"}`: "2",
			`lm_in_flight{model="test/one"}`: "0", `lm_in_flight{model="test/two"}`: "1",
			`lm_warm_saves_total{model="test/one"}`: "1", `lm_warm_bytes{model="test/one"}`: "7",
		}
		got := values(t, registry, "lm_warm_saves_total", "lm_warm_bytes", "lm_loads_total", "lm_load_seconds_count", "lm_evictions_total", "lm_loaded", "lm_slots", "lm_in_flight")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the %s configuration's (-want +got):\n%s", name, diff)
		}
	}
	lease.Release()
	if got := values(t, after, "lm_in_flight"); got[`lm_in_flight{model="test/two"}`] != "0" {
		t.Errorf("after the request: %v", got)
	}
	report := manage.DescribeOverview(n.Overview(), n.Devices.List(), time.Now())
	if len(report.Instances) != 1 || report.Instances[0].ID != "test/two" || report.Instances[0].Expires.Sub(report.Instances[0].LastUsed) != time.Hour {
		t.Errorf("ps: %+v", report)
	}
}

// Two sites with the API are one app, and one collector.
func TestMetrics_AreRegisteredOnce(t *testing.T) {
	adapted, err := adapt(t, "Caddyfile", []byte("http://:1 {\n\tlm_api\n\tmetrics /metrics\n}\nhttp://:2 {\n\tlm_api\n\tmetrics /metrics\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(adapted, &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Error(err)
	}
}
