package logs

import "testing"

// A line of an engine, of which there are twenty for each request.
func BenchmarkHandler(b *testing.B) {
	log := logger(New(), discard, false).With("part", "supervisor", "instance", "lmcaddy/tinychat")
	b.ReportAllocs()
	for b.Loop() {
		log.Debug("engine", "line", "0.21.137.794 I slot   operator(): id  0 | task 0 | new prompt, n_ctx_slot = 2048, n_keep = 0, task.n_tokens = 9")
	}
}
