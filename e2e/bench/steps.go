package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// step is a part of what a proxy does for a request. The time of a sample counts to the first step that knows a function of its stack, from
// the innermost outwards: so what is called belongs to its caller, unless it has a step of its own.
type step struct {
	name  string
	funcs []string // beginnings of their names
	under string   // only if one of the callers' names begins with this; empty: always
}

// The packages of the project, and of others that proxies are made of.
const (
	project = "github.com/lmcaddy/lmcaddy/"
	caddys  = "github.com/caddyserver/caddy/v2"
	caddyS  = caddys + "/modules/caddyhttp"
)

// otherStep is what no step knows.
const otherStep = "other"

// steps are in the order of a request. The first that fits counts, so special ones come before general ones.
var steps = []step{
	{name: "garbage collection", funcs: []string{
		"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.gcStart", "runtime.gcMarkDone", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcDrain",
	}},
	{name: "authentication", funcs: []string{
		project + "caddymodule.(*Auth)", project + "api.(*API).Admit", project + "api.identify", project + "api/endpoint.(*Call).Auth",
		project + "api/endpoint.(*Call).Follow", project + "api/endpoint.(*Call).Admit", project + "node/access.",
	}},
	{name: "log, metrics", funcs: []string{
		"log/slog", "go.uber.org/zap", "github.com/prometheus", project + "internal/logs", project + "internal/histogram", project + "node/record.",
		project + "api/endpoint.(*Call).Settle", project + "caddymodule.tellCaddy",
		caddyS + ".(*Server).logRequest", caddyS + ".(*metricsInstrumentedRoute)", caddyS + ".(*metricsInstrumentedHandler)",
	}},
	{name: "reading the request", funcs: []string{
		"net/http.(*conn).readRequest", "net/http.readRequest", "net/http.(*connReader)", caddyS + ".(*lengthReader)",
		caddyS + ".(*http2Conn).Read", caddyS + ".(*IdleTimeoutReader)", project + "api/endpoint.(*Call).Body",
		project + "api/endpoint.(*heldBuffer)",
	}},
	{name: "translating the answer", funcs: []string{project + "translate"}, under: project + "api/text.(*Run).read"},
	{name: "parsing and translating the request", funcs: []string{project + "translate", project + "internal/prefix"}},
	{name: "from the engine", funcs: []string{
		"net/http.(*persistConn).readLoop", "net/http.(*persistConn).Read", "net/http.ReadResponse", "net/http.(*bodyEOFSignal)",
		project + "internal/http1.(*conn).readHead", project + "internal/http1.limitedHead", project + "internal/http1.(*body)",
		project + "supervisor/process.(*exchange)", project + "supervisor/process.(*pulse)",
	}},
	{name: "to the engine", funcs: []string{
		"net/http.(*Transport)", "net/http.(*persistConn)", "net/http.(*Request).write", "net/http.(*transferWriter)", "net/http.(*transportRequest)",
		"net/http.persistConnWriter", "net/http.(*Client)", "net/http.send", project + "supervisor/process.(*Process)", project + "supervisor.(*Lease).Post",
		project + "supervisor.(*payloadReader)", project + "internal/http1.(*conn)", project + "internal/http1.(*Transport)",
	}},
	{name: "writing the answer", funcs: []string{
		"net/http.(*response)", "net/http.(*chunkWriter)", "net/http.checkConnErrorWriter", "net/http.(*ResponseController)", "net/http.Header.",
		caddyS + ".(*http2Conn).Write", caddyS + ".(*IdleTimeoutWriter)", project + "api/endpoint.(*Stream)", project + "api/endpoint.(*Call).Write",
	}},
	{name: "model, queue, slot", funcs: []string{project + "node", project + "supervisor", project + "catalog", project + "api/text.(*Request).OnLease"}},
	{name: "routes, contexts, errors", funcs: []string{project, caddyS + "/reverseproxy"}},
	{name: "Caddy", funcs: []string{caddys, "github.com/caddyserver/"}},
	{name: "net/http's connection", funcs: []string{"net/http."}},
	{name: "scheduler", funcs: []string{
		"runtime.mcall", "runtime.park_m", "runtime.schedule", "runtime.findRunnable", "runtime.mstart", "runtime.sysmon", "runtime.goexit0", "runtime.morestack", "runtime.gosched",
	}},
}

// The functions below which a sample is a system call, an allocation, or wakes another goroutine.
var (
	systemCalls = []string{"internal/runtime/syscall", "syscall.Syscall", "syscall.RawSyscall", "runtime.futex", "runtime.epollwait", "runtime.usleep", "runtime.nanosleep"}
	allocations = []string{"runtime.mallocgc", "runtime.growslice", "runtime.newobject", "runtime.makeslice"}
	wakings     = []string{"runtime.ready", "runtime.goready", "runtime.wakep", "runtime.startm"}
)

// share is the part of the processor time that a step takes, and what of it are system calls, allocations and waking other goroutines.
type share struct{ all, system, allocating, waking float64 }

// shares has a share for each step that has one.
type shares map[string]share

// sharesOf divides the time of a profile among the steps.
func sharesOf(p *profile.Profile) shares {
	all, value := shares{}, len(p.SampleType)-1 // the processor time; before it is the number of samples
	var total float64
	for _, s := range p.Sample {
		total += float64(s.Value[value])
	}
	for _, s := range p.Sample {
		stack, part := stackOf(s), float64(s.Value[value])/total
		name := stepOf(stack)
		sum := all[name]
		sum.all += part
		if hasAny(stack, systemCalls) {
			sum.system += part
		}
		if hasAny(stack, allocations) {
			sum.allocating += part
		}
		if hasAny(stack, wakings) {
			sum.waking += part
		}
		all[name] = sum
	}
	return all
}

// stackOf returns the names of a sample's functions, the innermost first, with those that were inlined.
func stackOf(s *profile.Sample) []string {
	var stack []string
	for _, at := range s.Location {
		for _, line := range at.Line {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	return stack
}

func stepOf(stack []string) string {
	for i, name := range stack {
		for _, s := range steps {
			if startsWithAny(name, s.funcs) && (s.under == "" || hasAny(stack[i:], []string{s.under})) {
				return s.name
			}
		}
	}
	return otherStep
}

func startsWithAny(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func hasAny(stack, prefixes []string) bool {
	return slices.ContainsFunc(stack, func(name string) bool { return startsWithAny(name, prefixes) })
}

// readShares reads a profile of processor time.
func readShares(path string) (shares, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return sharesOf(p), nil
}

// costed is the shares of a load's processor time, and the time that they are shares of.
type costed struct {
	shares
	cpu float64 // for each request, or 1,000 chunks, in seconds
}

// writeSteps writes a table of the steps of ours beside those of plain Caddy, the most expensive first.
func writeSteps(w io.Writer, ours, plain costed) {
	printf(w, "| step | time | share | system calls | allocating | waking others | plain Caddy |")
	printf(w, "|---|--:|--:|--:|--:|--:|--:|")
	var names []string
	for _, s := range append(slices.Clone(steps), step{name: otherStep}) {
		if ours.shares[s.name].all > 0 || plain.shares[s.name].all > 0 {
			names = append(names, s.name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(ours.shares[b].all, ours.shares[a].all) })
	for _, name := range names {
		s := ours.shares[name]
		printf(w, "| %s | %s | %.0f %% | %s | %s | %s | %s |", name, micros(s.all*ours.cpu), 100*s.all,
			micros(s.system*ours.cpu), micros(s.allocating*ours.cpu), micros(s.waking*ours.cpu), micros(plain.shares[name].all*plain.cpu))
	}
	var sum share
	for _, s := range ours.shares {
		sum.system, sum.allocating, sum.waking = sum.system+s.system, sum.allocating+s.allocating, sum.waking+s.waking
	}
	printf(w, "| **all** | **%s** | | %s | %s | %s | **%s** |", micros(ours.cpu), micros(sum.system*ours.cpu), micros(sum.allocating*ours.cpu),
		micros(sum.waking*ours.cpu), micros(plain.cpu))
}

// micros writes a time in microseconds.
func micros(seconds float64) string {
	switch us := seconds * 1e6; {
	case us == 0:
		return ""
	case us < 10:
		return fmt.Sprintf("%.1f µs", us)
	default:
		return fmt.Sprintf("%.0f µs", us)
	}
}
