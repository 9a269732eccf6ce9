package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ratiosFile has the ratios of the last measurement that was committed. It is relative to the module's folder: see TestMain.
const ratiosFile = "bench/ratios.json"

// Measurement is what ratiosFile has: figures that don't depend on the speed of the machine.
type Measurement struct {
	Commit     string   `json:"commit"`
	Date       string   `json:"date"`
	Go         string   `json:"go"`
	Processors int      `json:"processors"`
	Rounds     int      `json:"rounds"`
	Missing    []string `json:"missing,omitempty"` // targets that weren't measured, with the reason
	Ratios     []Ratio  `json:"ratios"`
}

// Ratio is the medians of a target under a load, as multiples of those of the bare proxy.
type Ratio struct {
	Load    string  `json:"load"`
	Clients int     `json:"clients"`
	Target  string  `json:"target"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	CPU     float64 `json:"cpu"`
}

// worse is how much a figure of ours may grow before it is reported: by less, medians differ between two measurements of the same program.
const worse = 1.1

// measurementOf returns the ratios of results.
func measurementOf(s site, p plan, all results) Measurement {
	m := Measurement{
		Commit: commit(), Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), Processors: runtime.NumCPU(), Rounds: p.rounds, Missing: s.missing,
	}
	for _, w := range p.loads {
		for _, clients := range p.clients {
			bare := all[key{w.name, clients, floor}]
			for _, t := range s.targetsOf(w) {
				if t.name == direct || t.name == floor || strings.HasSuffix(t.name, olderName("")) {
					continue
				}
				row := all[key{w.name, clients, t.name}]
				m.Ratios = append(m.Ratios, Ratio{w.name, clients, t.name, rounded(row.ratio(bare, p50)), rounded(row.ratio(bare, p99)), rounded(row.ratio(bare, cpu))})
			}
		}
	}
	return m
}

func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// commit returns the commit that is checked out; empty: unknown.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(hash))
}

// find returns the ratio of a target under a load.
func (m *Measurement) find(load string, clients int, target string) (Ratio, bool) {
	for _, r := range m.Ratios {
		if r.Load == load && r.Clients == clients && r.Target == target {
			return r, true
		}
	}
	return Ratio{}, false
}

// readRatios reads the last measurement. There may be none.
func readRatios() (m Measurement, err error) {
	content, err := os.ReadFile(ratiosFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &m)
	}
	return m, err
}

func (m *Measurement) write() error {
	content, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(ratiosFile, append(content, '\n'), 0o644) //nolint:gosec // it is committed
}

// compare writes what of ours has become worse since the last measurement, or better.
func (m *Measurement) compare(w io.Writer, last *Measurement) {
	if len(last.Ratios) == 0 {
		return
	}
	printf(w, "\nSINCE %s of %s  (ratios to the bare proxy that differ by more than %.0f %%)", last.Commit, last.Date, 100*(worse-1))
	changes := 0
	for _, r := range m.Ratios {
		old, ok := last.find(r.Load, r.Clients, r.Target)
		if !ok || r.Target != ours && r.Target != oneBody {
			continue
		}
		for _, f := range []struct {
			name     string
			now, was float64
		}{{"p50", r.P50, old.P50}, {"CPU", r.CPU, old.CPU}} {
			word := "worse"
			if f.now < f.was {
				word = "better"
			}
			if f.now > f.was*worse || f.was > f.now*worse {
				printf(w, "%-18s %s, %d client(s): %s %.2f, was %.2f: %s", r.Target, r.Load, r.Clients, f.name, f.now, f.was, word)
				changes++
			}
		}
	}
	if changes == 0 {
		printf(w, "none")
	}
}

// table writes the ratios as tables of the document.
func (m *Measurement) table(w io.Writer) {
	if len(m.Ratios) == 0 {
		return
	}
	printf(w, "Measured on %s with %s on %d processors; medians of %d rounds; commit %s.", m.Date, strings.Replace(m.Go, "go", "Go ", 1), m.Processors, m.Rounds, m.Commit)
	for _, reason := range m.Missing {
		printf(w, "Not measured: %s.", reason)
	}
	loads, clients, targets := namesOf(m.Ratios, func(r Ratio) string { return r.Load }), namesOf(m.Ratios, func(r Ratio) int { return r.Clients }),
		namesOf(m.Ratios, func(r Ratio) string { return r.Target })
	for _, n := range clients {
		printf(w, "\n%d client(s): CPU, p50, p99\n\n| load | %s |\n|---|%s", n, strings.Join(targets, " | "), strings.Repeat("---|", len(targets)))
		for _, load := range loads {
			cells := []string{load}
			for _, target := range targets {
				cell := ""
				if r, ok := m.find(load, n, target); ok {
					cell = fmt.Sprintf("**%.2f**, %.2f, %.2f", r.CPU, r.P50, r.P99)
				}
				cells = append(cells, cell)
			}
			printf(w, "| %s |", strings.Join(cells, " | "))
		}
	}
}

// namesOf returns the different values, in the order of their first occurrence.
func namesOf[T comparable](all []Ratio, of func(Ratio) T) (names []T) {
	for _, r := range all {
		if !slices.Contains(names, of(r)) {
			names = append(names, of(r))
		}
	}
	return names
}
