package bench

import (
	"cmp"
	"slices"
	"time"
)

// figures are the results of one load, in seconds, requests and bytes.
type figures struct {
	p50, p99 float64 // of the time to the answer's end
	rate     float64 // requests per second
	cpu      float64 // of the proxy, for each request, or for each 1,000 chunks if chunks are measured
	resident float64
}

// measure are the names of figures.
type measure func(figures) float64

func p50(f figures) float64      { return f.p50 }
func p99(f figures) float64      { return f.p99 }
func rate(f figures) float64     { return f.rate }
func cpu(f figures) float64      { return f.cpu }
func resident(f figures) float64 { return f.resident }

func figuresOf(s sample, w workload) figures {
	slices.Sort(s.latencies)
	n := float64(len(s.latencies))
	f := figures{
		p50:      quantile(s.latencies, 0.50).Seconds(),
		p99:      quantile(s.latencies, 0.99).Seconds(),
		rate:     n / s.took.Seconds(),
		cpu:      s.cpu.Seconds() / n,
		resident: float64(s.resident),
	}
	if w.isLong {
		f.cpu *= 1000 / float64(w.events)
	}
	return f
}

// quantile returns a quantile of sorted values.
func quantile(sorted []time.Duration, part float64) time.Duration {
	i := int(part * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// series is the same measurement in each round.
type series []figures

func (s series) median(of measure) float64 {
	values := make([]float64, len(s))
	for i, f := range s {
		values[i] = of(f)
	}
	return median(values)
}

// ratio is the median of the rounds' ratios, which a disturbance of a whole round doesn't affect.
func (s series) ratio(to series, of measure) float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = of(s[i]) / of(to[i])
	}
	return median(values)
}
