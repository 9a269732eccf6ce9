package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// TestBench is the measurement with -full, otherwise a trial of it. With -profile, it writes profiles instead.
func TestBench(t *testing.T) {
	if *profiles != "" {
		writeProfiles(t, *profiles, *only)
		return
	}
	var table bytes.Buffer
	warm := warmPlan{shape: randommodel.Dense, rounds: 1, sizes: []int{600}, turns: 1, swaps: 1}
	p, out := plan{rounds: 1, requests: 8, clients: []int{1, 8}, loads: workloads(20), small: 160, large: 80, swaps: 2}, io.Writer(&table)
	if *full {
		p.rounds, p.lasting, p.loads, p.small, p.large, p.swaps = *rounds, 400*time.Millisecond, workloads(1000), 100000 / *shrink, 2000 / *shrink, 20
		warm = warmPlan{shape: randommodel.Slow, rounds: min(*rounds, 3), sizes: []int{1024, 4096, 8192}, turns: 4, swaps: 20}
		out = os.Stdout
	}
	var verdicts []verdict
	isLoad := func(w workload) bool { return w.name == *only }
	if slices.ContainsFunc(p.loads, isLoad) {
		p.loads = slices.DeleteFunc(p.loads, func(w workload) bool { return !isLoad(w) })
		verdicts = append(verdicts, proxies(t, out, p)...)
	}
	if *only == "" || *only == "proxy" || *only == "memory" {
		verdicts = append(verdicts, proxies(t, out, p)...)
	}
	if *only == "" || *only == "swap" {
		verdicts = append(verdicts, swaps(t, out, p)...)
	}
	if *only == "" || *only == "auth" {
		verdicts = append(verdicts, authentication(t, out, p)...)
	}
	if *only == "" || *only == "hop" {
		verdicts = append(verdicts, hops(t, out, p)...)
	}
	if *only == "" || *only == "warm" {
		verdicts = append(verdicts, conversations(t, out, warm)...)
	}
	reportVerdicts(out, verdicts)
	if *full {
		return
	}
	// 3 of the memory; 1 of the swaps; 1 of the authentication and of the hop for each number of clients; of conversations, 3 departures and
	// their texts, the agents, 2 of the titles, and the swap; and those of the loads, for each number of clients
	want := 3 + 1 + 2 + 2 + 4 + 1 + 2 + 1
	for _, w := range p.loads {
		want += len(p.clients) * len(judge(w, 1, func(string) series { return series{{}} }))
	}
	if got := strings.Count(table.String(), " met\n") + strings.Count(table.String(), " missed\n"); got != want {
		t.Errorf("the table has %d verdicts, want %d", got, want)
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
		if *only == "" || *only == "proxy" {
			keepRatios(t, out, s, p, all)
		}
	}
	if *only == "" || *only == "memory" {
		more, err := reportMemory(out, s, p)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, more...)
	}
	return verdicts
}

// keepRatios compares the ratios with the last ones, and with -update replaces these.
func keepRatios(t *testing.T, out io.Writer, s site, p plan, all results) {
	last, err := readRatios()
	if err != nil {
		t.Fatal(err)
	}
	now := measurementOf(s, p, all)
	now.compare(out, &last)
	if !*update {
		return
	}
	var table bytes.Buffer
	now.table(&table)
	if err := errors.Join(now.write(), replaceInDocument(benchCommand, table.String())); err != nil {
		t.Error(err)
	}
}

// TestDocument_HasTheLastRatios: the tables are those of the file.
func TestDocument_HasTheLastRatios(t *testing.T) {
	t.Parallel()
	last, err := readRatios()
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	last.table(&table)
	text, err := madeBy(benchCommand)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(table.String()), text); diff != "" {
		t.Errorf("%s (-ratios.json +document):\n%s", document, diff)
	}
}
