package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestStepOf: the innermost function that a step knows decides.
func TestStepOf(t *testing.T) {
	t.Parallel()
	const serve = "net/http.(*conn).serve"
	for want, stack := range map[string][]string{
		"reading the request":                 {"internal/runtime/syscall.Syscall6", "net.(*conn).Read", "net/http.(*connReader).Read", "net/http.(*conn).readRequest", serve},
		"writing the answer":                  {"syscall.write", "net/http.checkConnErrorWriter.Write", project + "api.(*stream).send", project + "api.(*run).read", serve},
		"parsing and translating the request": {"runtime.memmove", project + "translate/jsonbody.Scan", project + "api.(*call).body", serve},
		"translating the answer":              {project + "translate/llamaserver.(*rewriter).Append", project + "api/text.(*Run).read", serve},
		"routes, contexts, errors":            {"runtime.mallocgc", project + "api.(*API).ServeHTTP", serve},
		"Caddy":                               {"context.WithValue", caddyS + ".PrepareRequest", serve},
		"net/http's connection":               {"time.Now", serve},
		"scheduler":                           {"runtime.netpoll", "runtime.findRunnable", "runtime.schedule", "runtime.park_m", "runtime.mcall"},
		"garbage collection":                  {"runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker"},
		otherStep:                             {"runtime.asyncPreempt"},
	} {
		if got := stepOf(stack); got != want {
			t.Errorf("%s: %s, want %s", stack[0], got, want)
		}
	}
}

// TestWriteSteps: the shares are of the processor time of one request.
func TestWriteSteps(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}}}
	for nanos, stack := range map[int64][]string{
		300: {"internal/runtime/syscall.Syscall6", "net/http.(*persistConn).readLoop"},
		100: {"runtime.mallocgc", "net/http.(*persistConn).readLoop"},
		600: {"runtime.goready", "net/http.(*Transport).RoundTrip"},
	} {
		s := &profile.Sample{Value: []int64{1, nanos}}
		for _, name := range stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		p.Sample = append(p.Sample, s)
	}
	got := sharesOf(p)
	if from := got["from the engine"]; math.Abs(from.all-0.4) > 1e-9 || math.Abs(from.system-0.3) > 1e-9 || math.Abs(from.allocating-0.1) > 1e-9 || from.waking != 0 {
		t.Errorf("from the engine: %+v", from)
	}
	var table strings.Builder
	writeSteps(&table, costed{got, 100e-6}, costed{shares{"Caddy": {all: 1}}, 50e-6})
	want := strings.Join([]string{
		"| step | time | share | system calls | allocating | waking others | plain Caddy |",
		"|---|--:|--:|--:|--:|--:|--:|",
		"| to the engine | 60 µs | 60 % |  |  | 60 µs |  |",
		"| from the engine | 40 µs | 40 % | 30 µs | 10 µs |  |  |",
		"| Caddy |  | 0 % |  |  |  | 50 µs |",
		"| **all** | **100 µs** | | 30 µs | 10 µs | 60 µs | **50 µs** |",
		"",
	}, "\n")
	if table.String() != want {
		t.Errorf("the table:\n%s\nwant:\n%s", table.String(), want)
	}
}
