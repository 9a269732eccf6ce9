package caddymodule

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// The series. Their label "model" is a model's key in the catalog, never what a request said.
var (
	loadsSeries     = series("loads_total", "How often the model was loaded.", "model")
	loadTimeSeries  = series("load_seconds", "How long loading the model took, from the launch of its engine until it was ready.", "model")
	evictionsSeries = series("evictions_total", "How often an instance of the model was unloaded for another's sake (room), "+
		"for other programs on its GPU (gpu), or since nobody used it (ttl).", "model", "reason")
	unloadsSeries = series("unloads_total", "How often an instance of the model was ended on request (unload), "+
		"to be started with other settings (settings) or to leave room for another (sharing), "+
		"or since its process was sent a signal to end (signal).", "model",
		"reason")
	crashesSeries  = series("crashes_total", "How often a loaded instance's engine ended unexpectedly or hung.", "model")
	failuresSeries = series("failures", "How often in a row the model has failed, while loading or loaded; 0 once it has worked.", "model")
	waitingSeries  = series("waiting", "Requests that wait for the model.", "model")
	inFlightSeries = series("in_flight", "Slots of the model's instances that requests use.", "model")
	slotsSeries    = series("slots", "Slots that the model's loaded instances have.", "model")
	loadedSeries   = series("loaded", "Loaded instances of the model.", "model")
	residentSeries = series("resident_memory_bytes", "Memory of the machine that the model's engines held when it was last looked at.",
		"model")
	claimSeries = series("memory_claim_bytes", "Memory of the machine that the model's instances are counted with against the budget.",
		"model")
	budgetSeries = series("memory_budget_bytes", "Memory of the machine that all instances may take together. Absent: there is no bound.")

	gpuClaimSeries  = series("gpu_claim_bytes", "Memory of a GPU that the model's instances are counted with.", "model", "device")
	gpuBudgetSeries = series("gpu_budget_bytes", "Memory of a GPU that all instances may take together.", "device")
	gpuHeldSeries   = series("gpu_held_bytes", "Memory of a GPU that other programs hold, as far as that is known.", "device")

	usedRequestsSeries = series("used_requests_total",
		"Requests that the model answered, or began to, for an owner: a token's id, user:name, or nobody in particular.", "owner", "model")
	usedTokensSeries = series("used_tokens_total",
		"Tokens of the requests in lm_used_requests_total: those of prompts (in) and those generated (out).", "owner", "model", "direction")

	mcpCallsSeries = series("mcp_calls_total", "Calls of the tools of an MCP server: with a result (ok), "+
		"with an error of the tool (error), or at which the server failed (failed). The server is a label of mcp.json, "+
		"or empty for all that requests name.", "server", "outcome")
	mcpSecondsSeries     = series("mcp_call_seconds_total", "How long the calls in lm_mcp_calls_total took together.", "server")
	mcpConnectionsSeries = series("mcp_connections", "Open connections to an MCP server.", "server")

	warmSavesSeries    = series("warm_saves_total", "States of the model's conversations that were saved to files.", "model")
	warmRestoresSeries = series("warm_restores_total", "Saved states that were given back to an engine.", "model")
	warmMissesSeries   = series("warm_misses_total",
		"Restores in lm_warm_restores_total of which the engine used less than half of what was expected.", "model")
	warmRefusedSeries = series("warm_refused_total",
		"Saved states that were deleted because they were damaged, or because an engine refused them.", "model")
	warmSparedSeries = series("warm_spared_tokens_total", "Tokens of prompts that engines needn't process, thanks to restored states.",
		"model")
	warmWrittenSeries = series("warm_written_bytes_total", "Bytes that engines wrote to save states.", "model")
	warmReadSeries    = series("warm_read_bytes_total", "Bytes of states that were restored.", "model")
	warmStatesSeries  = series("warm_states", "Saved states of the model's conversations that are kept.", "model")
	warmBytesSeries   = series("warm_bytes", "Bytes that the states in lm_warm_states take.", "model")
)

var allSeries []*prometheus.Desc

func series(name, help string, labels ...string) *prometheus.Desc {
	made := prometheus.NewDesc("lm_"+name, help, labels, nil)
	allSeries = append(allSeries, made)
	return made
}

// The reasons that a series has from the start, at 0: the rate of a series that appears with its first event is wrong.
var (
	evictionReasons = []schedule.Reason{schedule.ForRoom, schedule.ForOthers, schedule.ForIdleness}
	unloadReasons   = []schedule.Reason{schedule.ForRequest, schedule.ForSettings, schedule.ForSharing, schedule.ForSignal}
)

// collector reads an app's node whenever it is asked. Each configuration has a registry of its own, and so a collector; what
// is counted is the node's, which outlives them. Nothing here looks at the disk or wakes a model.
type collector struct{ app *App }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range allSeries {
		ch <- s
	}
}

// Collect sends nothing before the app has started.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	if n := c.app.running(); n != nil {
		overview, counts := n.Overview(), n.Counts()
		collect(ch, overview, counts)
		collectEngines(ch, overview.Instances)
		collectSwaps(ch, counts)
		traffic := n.Record.Traffic.Snapshot()
		traffic.Preset(api.DialectNames(), maps.Keys(counts))
		collectTraffic(ch, traffic)
		f := serverFigures{version: versionOf(), goVersion: runtime.Version(), began: n.Record.Began, latency: n.Stores.Latency()}
		f.downloads, f.left = n.Downloads.Counts()
		f.collect(ch)
		collectUsed(ch, n.Record.Usage.Totals)
		collectMCP(ch, n.MCP.Counts())
		collectWarm(ch, n.Warm.Counts())
	}
}

// collectWarm sends what was done with saved states.
func collectWarm(ch chan<- prometheus.Metric, counts []warm.Counts) {
	for i := range counts {
		c := &counts[i]
		model := valid(c.Model)
		sendCount(ch, warmSavesSeries, c.Saves, model)
		sendCount(ch, warmRestoresSeries, c.Restores, model)
		sendCount(ch, warmMissesSeries, c.Misses, model)
		sendCount(ch, warmRefusedSeries, c.Refused, model)
		sendCount(ch, warmSparedSeries, c.Spared, model)
		sendCount(ch, warmWrittenSeries, c.Written, model)
		sendCount(ch, warmReadSeries, c.Read, model)
		sendValue(ch, warmStatesSeries, float64(c.States), model)
		sendValue(ch, warmBytesSeries, float64(c.Held), model)
	}
}

// collectMCP sends the calls of tools.
func collectMCP(ch chan<- prometheus.Metric, counts []servers.Count) {
	for _, c := range counts {
		server := valid(c.Server)
		for outcome, n := range map[string]int64{"ok": c.OK, "error": c.Errors, "failed": c.Failures} {
			sendCount(ch, mcpCallsSeries, n, server, outcome)
		}
		ch <- prometheus.MustNewConstMetric(mcpSecondsSeries, prometheus.CounterValue, c.Seconds, server)
		sendValue(ch, mcpConnectionsSeries, float64(c.Connections), server)
	}
}

// collectUsed sends the usage since the start. An owner is no secret: it is a token's id, or a user of another authentication.
func collectUsed(ch chan<- prometheus.Metric, totals func(func(owner, model string, used store.UsageCount))) {
	totals(func(owner, model string, used store.UsageCount) {
		owner, model = valid(owner), valid(model)
		sendCount(ch, usedRequestsSeries, used.Requests, owner, model)
		sendCount(ch, usedTokensSeries, used.TokensIn, owner, model, "in")
		sendCount(ch, usedTokensSeries, used.TokensOut, owner, model, "out")
	})
}

func collect(ch chan<- prometheus.Metric, o supervisor.Overview, counts map[string]supervisor.Counts) {
	if most := o.Limits.Memory; most > 0 {
		sendValue(ch, budgetSeries, float64(most))
	}
	for _, g := range o.GPUs {
		sendValue(ch, gpuBudgetSeries, float64(cmp.Or(max(0, g.Budget), g.Total)), g.Name)
		sendValue(ch, gpuHeldSeries, float64(g.Held), g.Name)
	}
	models := sumUp(o, counts)
	for _, key := range slices.Sorted(maps.Keys(models)) {
		models[key].collect(ch, key)
	}
}

// modelSums has the values of a model's series. Every model that was loaded or waited for since the start has one, so its
// series stay when it is unloaded.
type modelSums struct {
	supervisor.Counts

	failures, waiting, inFlight, slots, loaded int
	resident, claim                            int64
	onGPUs                                     map[string]int64 // by device
}

func sumUp(o supervisor.Overview, counts map[string]supervisor.Counts) map[string]*modelSums {
	models := map[string]*modelSums{}
	of := func(key string) *modelSums {
		key = valid(key) // a folder may have any name
		if models[key] == nil {
			models[key] = &modelSums{onGPUs: map[string]int64{}, Counts: supervisor.Counts{Loads: histogram.New(histogram.Loads)}}
		}
		return models[key]
	}
	for key, c := range counts {
		of(key).Counts = c
	}
	for _, f := range o.Failing {
		of(f.Key).failures = f.Count
	}
	for key, n := range o.Waiting {
		of(key).waiting = n
	}
	for _, in := range o.Instances {
		m := of(in.Spec.Model.Key)
		m.inFlight += in.InUse
		m.resident += in.Resident
		m.claim += in.OnMachine()
		for _, d := range in.OnGPUs {
			m.onGPUs[d.Device] += d.Bytes
		}
		if in.IsLoaded() {
			m.loaded++
			m.slots += in.Spec.Parallel
		}
	}
	return models
}

func (m *modelSums) collect(ch chan<- prometheus.Metric, key string) {
	loads, _ := m.Loads.Cumulative()
	sendCount(ch, loadsSeries, loads, key)
	sendCount(ch, crashesSeries, m.Crashes, key)
	for _, reason := range evictionReasons {
		sendCount(ch, evictionsSeries, m.Stops[reason], key, string(reason))
	}
	for _, reason := range unloadReasons {
		sendCount(ch, unloadsSeries, m.Stops[reason], key, string(reason))
	}
	sendValue(ch, failuresSeries, float64(m.failures), key)
	sendValue(ch, waitingSeries, float64(m.waiting), key)
	sendValue(ch, inFlightSeries, float64(m.inFlight), key)
	sendValue(ch, slotsSeries, float64(m.slots), key)
	sendValue(ch, loadedSeries, float64(m.loaded), key)
	sendValue(ch, residentSeries, float64(m.resident), key)
	sendValue(ch, claimSeries, float64(m.claim), key)
	for _, device := range slices.Sorted(maps.Keys(m.onGPUs)) {
		sendValue(ch, gpuClaimSeries, float64(m.onGPUs[device]), key, device)
	}
	sendHistogram(ch, loadTimeSeries, m.Loads, key)
}

// The series about requests, and about the server as a whole.
var (
	requestsSeries = series("requests_total", "Requests to a model that have ended. The outcome is ok, cancelled (by the client), "+
		"or the kind of the error. The model is empty where a request names none that there is.", "model", "dialect", "outcome")
	errorsSeries = series("errors_total", "Errors that clients were told, of requests of any kind.", "dialect", "kind")
	promptSeries = series("prompt_tokens_total", "Tokens of the prompts of requests to the model, with the cached ones.", "model")
	cachedSeries = series("cached_tokens_total",
		"Tokens of prompts that the engine had kept and didn't process again. A part of lm_prompt_tokens_total.", "model")
	generatedSeries = series("generated_tokens_total", "Tokens that the model generated.", "model")
	durationSeries  = series("request_seconds", "Duration of requests with a complete answer, from arrival to the end of the answer.",
		"model")
	firstTokenSeries = series("time_to_first_token_seconds", "Time from a request's arrival to the first token of its answer.", "model")
	perTokenSeries   = series("time_per_output_token_seconds", "Time that the engine took for each token, as the average of an answer.",
		"model")
	queueSeries = series("queue_seconds", "Time that requests waited for a slot, or for room for the model, without its load.", "model")
	swapSeries  = series("swap_seconds", "Durations of the phases of a swap: unload (ending a process), launch (starting one), "+
		"load (until it is ready) and restore (reading the saved state of a prompt).", "model", "phase")

	buildSeries        = series("build_info", "The server's version; always 1.", "version", "go_version")
	engineSeries       = series("engine_info", "The engine of a loaded model, and its version; always 1.", "model", "engine", "version")
	startSeries        = series("start_time_seconds", "When the model server was started, as seconds since 1970.")
	downloadsSeries    = series("downloads", "Downloads of models that are known, by state.", "state")
	downloadLeftSeries = series("download_left_bytes", "Bytes that the downloads in progress have yet to fetch.")
	storeSeries        = series("store_seconds", "Duration of the reads and writes of the store. A write includes the wait for others.",
		"operation")
	storeErrorsSeries = series("store_errors_total", "Reads and writes of the store that the database failed.", "operation")
)

// valid is a label's value. A folder, and so a model's key, may have any name.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func sendHistogram(ch chan<- prometheus.Metric, s *prometheus.Desc, h histogram.Histogram, labels ...string) {
	count, within := h.Cumulative()
	ch <- prometheus.MustNewConstHistogram(s, count, h.Sum, within, labels...)
}

func sendCount[N uint64 | int | int64](ch chan<- prometheus.Metric, s *prometheus.Desc, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(s, prometheus.CounterValue, float64(n), labels...)
}

func sendValue(ch chan<- prometheus.Metric, s *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(s, prometheus.GaugeValue, value, labels...)
}

func collectTraffic(ch chan<- prometheus.Metric, t record.Traffic) {
	for key, n := range t.Requests {
		sendCount(ch, requestsSeries, n, valid(key.Model), key.Dialect, key.Outcome)
	}
	for key, n := range t.Errors {
		sendCount(ch, errorsSeries, n, key.Dialect, key.Kind)
	}
	for key, m := range t.Models {
		key = valid(key)
		sendCount(ch, promptSeries, m.PromptTokens, key)
		sendCount(ch, cachedSeries, m.CachedTokens, key)
		sendCount(ch, generatedSeries, m.GeneratedTokens, key)
		sendHistogram(ch, durationSeries, m.Duration, key)
		sendHistogram(ch, firstTokenSeries, m.FirstToken, key)
		sendHistogram(ch, perTokenSeries, m.PerToken, key)
		sendHistogram(ch, queueSeries, m.Queue, key)
	}
}

// collectSwaps sends how long the phases of swaps took. A model has all of them from the start.
func collectSwaps(ch chan<- prometheus.Metric, counts map[string]supervisor.Counts) {
	for key, c := range counts {
		for _, phase := range supervisor.Phases {
			h, ok := c.Phases[phase]
			if !ok {
				h = histogram.New(histogram.Waits)
			}
			sendHistogram(ch, swapSeries, h, valid(key), string(phase))
		}
	}
}

type serverFigures struct {
	version   string
	goVersion string
	began     time.Time
	downloads map[fetch.State]int
	left      int64
	latency   store.Latency
}

func (f *serverFigures) collect(ch chan<- prometheus.Metric) {
	sendValue(ch, buildSeries, 1, f.version, f.goVersion)
	sendValue(ch, startSeries, float64(f.began.UnixMilli())/1000)
	for state, n := range f.downloads {
		sendValue(ch, downloadsSeries, float64(n), string(state))
	}
	sendValue(ch, downloadLeftSeries, float64(f.left))
	sendHistogram(ch, storeSeries, f.latency.Reads, "read")
	sendHistogram(ch, storeSeries, f.latency.Writes, "write")
	sendCount(ch, storeErrorsSeries, f.latency.FailedReads, "read")
	sendCount(ch, storeErrorsSeries, f.latency.FailedWrites, "write")
}

func collectEngines(ch chan<- prometheus.Metric, all []supervisor.Info) {
	type label struct{ model, engine, version string }
	seen := map[label]bool{}
	for i := range all {
		in := &all[i]
		l := label{valid(in.Spec.Model.Key), in.Build.Engine, valid(in.Build.Version)}
		if l.engine != "" && !seen[l] {
			seen[l] = true
			sendValue(ch, engineSeries, 1, l.model, l.engine, l.version)
		}
	}
}
