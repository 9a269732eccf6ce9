package caddymodule

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

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
