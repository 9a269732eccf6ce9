package caddymodule

import (
	"cmp"
	"maps"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
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
