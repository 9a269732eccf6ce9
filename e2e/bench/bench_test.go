package bench

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBench is the measurement with -full, otherwise a trial of it. With -profile, it writes profiles instead.
func TestBench(t *testing.T) {
	if *profile != "" {
		writeProfiles(t, *profile, *only)
		return
	}
	var table bytes.Buffer
	p, out := plan{rounds: 1, requests: 8, clients: []int{1, 8}, events: 20, small: 160, large: 80, swaps: 2}, io.Writer(&table)
	if *full {
		p.rounds, p.lasting, p.events, p.small, p.large, p.swaps = *rounds, 400*time.Millisecond, 1000, 100000 / *shrink, 2000 / *shrink, 20
		out = os.Stdout
	}
	var verdicts []verdict
	if *only == "" || *only == "proxy" || *only == "memory" {
		verdicts = append(verdicts, proxies(t, out, p)...)
	}
	if *only == "" || *only == "swap" {
		verdicts = append(verdicts, swaps(t, out, p)...)
	}
	if *only == "" || *only == "auth" {
		verdicts = append(verdicts, authentication(t, out, p)...)
	}
	reportVerdicts(out, verdicts)
	if *full {
		return
	}
	// for each number of clients: 2 of each load but the paced one, 2 of the streams' CPU; 2 of the memory; 1 of the swaps; 1 of the
	// authentication for each number of clients
	if got := strings.Count(table.String(), " met\n") + strings.Count(table.String(), " missed\n"); got != 2*(4*2+2)+2+1+2 {
		t.Errorf("the table has %d verdicts", got)
	}
	if strings.Contains(table.String(), "NaN") || strings.Contains(table.String(), "Inf") {
		t.Error("a figure is missing")
	}
	if t.Failed() {
		t.Log(table.String())
	}
}

func proxies(t *testing.T, out io.Writer, p plan) []verdict {
	s := startSite(t)
	var verdicts []verdict
	if *only != "memory" {
		all, err := measureProxies(s, p)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = reportProxies(out, s, p, all)
	}
	if *only != "proxy" {
		more, err := reportMemory(out, s, p)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, more...)
	}
	return verdicts
}
