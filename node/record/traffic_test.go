package record

import (
	"maps"
	"slices"
	"testing"
)

// A model in use has its series before anything goes wrong, and what was counted stays.
func TestTraffic_Preset(t *testing.T) {
	t.Parallel()
	counter := NewTrafficCounter()
	counter.Observe(&Summary{Model: "a/asked", Dialect: "openai", Outcome: "engine_failed"}, true)
	counter.Observe(&Summary{Dialect: "native", Outcome: "invalid_api_key"}, false)
	traffic := counter.Snapshot()
	traffic.Preset([]string{"anthropic", "native", "openai", "v0"}, slices.Values([]string{"a/loaded"}))
	for key, want := range map[RequestKey]uint64{
		{"a/asked", "openai", "engine_failed"}: 1, {"a/asked", "v0", "ok"}: 0, {"a/loaded", "native", "model_load_failed"}: 0, {"a/loaded", "anthropic", "cancelled"}: 0,
	} {
		if got, ok := traffic.Requests[key]; !ok || got != want {
			t.Errorf("%v: %d, %v", key, got, ok)
		}
	}
	for key, want := range map[ErrorKey]uint64{{"openai", "engine_failed"}: 1, {"native", "invalid_api_key"}: 1, {"v0", "invalid_api_key"}: 0, {"openai", "store_busy"}: 0} {
		if got, ok := traffic.Errors[key]; !ok || got != want {
			t.Errorf("%v: %d, %v", key, got, ok)
		}
	}
	if got := slices.Sorted(maps.Keys(traffic.Models)); !slices.Equal(got, []string{"a/asked", "a/loaded"}) || len(traffic.Models["a/loaded"].Queue.Counts) == 0 {
		t.Errorf("%v", got)
	}
	if kinds := ErrorKinds(); slices.Contains(kinds, "") || slices.Contains(kinds, OutcomeOK) {
		t.Errorf("%q", kinds)
	}
}
