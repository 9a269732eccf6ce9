package bench

import (
	"fmt"
	"io"
	"runtime"
	"time"
)

// verdict is one of our targets, and whether it was met.
type verdict struct {
	what  string
	value string
	limit string
	met   bool
}

func atMost(what string, value, limit float64) verdict {
	return verdict{what, fmt.Sprintf("%.2f", value), fmt.Sprintf("at most %.2f", limit), value <= limit}
}

func atLeast(what string, value, limit float64) verdict {
	return verdict{what, fmt.Sprintf("%.2f", value), fmt.Sprintf("at least %.2f", limit), value >= limit}
}

func reportVerdicts(w io.Writer, all []verdict) {
	printf(w, "\nTARGETS")
	for _, v := range all {
		word := "missed"
		if v.met {
			word = "met"
		}
		printf(w, "%-70s %10s  %-22s %s", v.what, v.value, v.limit, word)
	}
}

// reportProxies writes a table for each load, and the verdicts on our targets.
func reportProxies(w io.Writer, s site, p plan, all results) (verdicts []verdict) {
	printf(w, "PROXY COST  (%d processors, the clients and the engine on them, too; medians of %d rounds, each of %s)", runtime.NumCPU(), p.rounds, p.lasting)
	for _, t := range s.targets {
		printf(w, "  %-18s %s", t.name, t.what)
	}
	for _, reason := range s.missing {
		printf(w, "  not measured: %s", reason)
	}
	for _, work := range p.loads {
		for _, clients := range p.clients {
			at := func(name string) series { return all[key{work.name, clients, name}] }
			unit := "request"
			if work.isLong {
				unit = "1,000 chunks"
			}
			printf(w, "\n%s (%d bytes up, %d events down), %d client(s); CPU of the proxy for each %s", work.name, len(work.body(true)), work.events, clients, unit)
			head := fmt.Sprintf("%-18s%9s%9s%9s%9s%9s |%26s |%26s", "", "p50", "p99", "req/s", "CPU", "RSS", "to floor: p50  req/s   CPU", "to caddy: p50  req/s   CPU")
			if *before != "" {
				head += " | to old:   p50  req/s   CPU"
			}
			printf(w, "%s", head)
			for _, t := range s.targetsOf(work) {
				row := at(t.name)
				line := fmt.Sprintf("%-18s%9s%9s%9.0f", t.name, seconds(row.median(p50)), seconds(row.median(p99)), row.median(rate))
				if t.pid != 0 {
					line += fmt.Sprintf("%9s%8.0fM |%s |%s", seconds(row.median(cpu)), row.median(resident)/(1<<20), ratios(row, at(floor)), ratios(row, at(caddy)))
				}
				if old := at(olderName(t.name)); len(old) > 0 {
					line += " |" + ratios(row, old)
				}
				printf(w, "%s", line)
			}
			verdicts = append(verdicts, judge(work, clients, at)...)
		}
	}
	return verdicts
}

func ratios(of, to series) string {
	return fmt.Sprintf("%13.2f %6.2f %5.2f", of.ratio(to, p50), of.ratio(to, rate), of.ratio(to, cpu))
}

func judge(work workload, clients int, at func(string) series) []verdict {
	name := fmt.Sprintf("%s, %d client(s): ", work.name, clients)
	verdicts := []verdict{atMost(name+"CPU to caddy", at(ours).ratio(at(caddy), cpu), work.most)}
	if work.pauseUS == 0 { // otherwise the engine alone determines the time
		verdicts = append(verdicts,
			atMost(name+"p50 to caddy", at(ours).ratio(at(caddy), p50), work.most),
			atLeast(name+"req/s to caddy", at(ours).ratio(at(caddy), rate), 1/work.most))
	}
	return verdicts
}

// seconds writes a time with three significant digits.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", s*1e6)
	default:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
}

// reportMemory measures the proxies' memory, and writes it.
func reportMemory(w io.Writer, s site, p plan) (verdicts []verdict, err error) {
	printf(w, "\nRESIDENT MEMORY under 8 clients (MiB: before, then the median while the first, the middle and the last tenth of the requests ran)")
	printf(w, "%-18s %-28s%8s%8s%8s%8s   %s", "", "", "before", "first", "middle", "last", "last to first")
	for _, phase := range []struct {
		work     workload
		requests int
	}{{small, p.small}, {large, p.large}} {
		for _, name := range []string{floor, caddy, ours} {
			m, err := measureMemory(s.target(name), phase.work, phase.requests)
			if err != nil {
				return nil, err
			}
			what := fmt.Sprintf("%d times %s", phase.requests, phase.work.name)
			printf(w, "%-18s %-28s%8.1f%8.1f%8.1f%8.1f   %.2f", name, what, mib(m.before), mib(m.first), mib(m.middle), mib(m.last), m.growth())
			if name == ours {
				verdicts = append(verdicts, atMost(what+": memory in the end, to the beginning", m.growth(), flat))
			}
			if name == ours && phase.work.name == small.name {
				verdicts = append(verdicts, atMost(what+": memory in the end, in MiB", mib(m.last), mostMemory))
			}
		}
	}
	return verdicts, nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
