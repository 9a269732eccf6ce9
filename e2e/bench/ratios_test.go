package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMeasurement_Compare tells of what is more than a tenth worse or better, of ours alone.
func TestMeasurement_Compare(t *testing.T) {
	t.Parallel()
	last := Measurement{Commit: "abc", Date: "2026-01-02", Ratios: []Ratio{
		{Load: "small body", Clients: 1, Target: ours, P50: 2, CPU: 2},
		{Load: "small body", Clients: 8, Target: ours, P50: 2, CPU: 2},
		{Load: "small body", Clients: 1, Target: caddy, P50: 1, CPU: 1},
	}}
	now := Measurement{Ratios: []Ratio{
		{Load: "small body", Clients: 1, Target: ours, P50: 2.21, CPU: 1.5},
		{Load: "small body", Clients: 8, Target: ours, P50: 2.19, CPU: 1.9},
		{Load: "small body", Clients: 1, Target: caddy, P50: 2, CPU: 2},
		{Load: "another", Clients: 1, Target: ours, P50: 2, CPU: 2},
	}}
	var said strings.Builder
	now.compare(&said, &last)
	want := strings.Join([]string{
		"", "SINCE abc of 2026-01-02  (ratios to the bare proxy that differ by more than 10 %)",
		"lmcaddy            small body, 1 client(s): p50 2.21, was 2.00: worse",
		"lmcaddy            small body, 1 client(s): CPU 1.50, was 2.00: better", "",
	}, "\n")
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMeasurement_Table has a row for each load and a column for each target. What wasn't measured is empty.
func TestMeasurement_Table(t *testing.T) {
	t.Parallel()
	m := Measurement{Commit: "abc", Date: "2026-01-02", Go: "go1.26.8", Processors: 2, Rounds: 9, Missing: []string{"olla isn't on PATH"}, Ratios: []Ratio{
		{"small body", 8, caddy, 1.1, 1.2, 1.3}, {"small body", 8, ours, 1.4, 1.5, 1.6}, {"whole answer", 8, ours, 2, 3, 4},
	}}
	var table strings.Builder
	m.table(&table)
	want := strings.Join([]string{
		"Measured on 2026-01-02 with Go 1.26.8 on 2 processors; medians of 9 rounds; commit abc.",
		"Not measured: olla isn't on PATH.", "",
		"8 client(s): CPU, p50, p99", "",
		"| load | caddy | lmcaddy |", "|---|---|---|",
		"| small body | **1.30**, 1.10, 1.20 | **1.60**, 1.40, 1.50 |",
		"| whole answer |  | **4.00**, 2.00, 3.00 |", "",
	}, "\n")
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
