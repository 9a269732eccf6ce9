package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/node/record"
)

// promtoolPath returns the path of Prometheus' own tool. It is asked for once, since the script may have to download the tool.
var promtoolPath = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("../../tools/promtool.sh").Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(path)), err
})

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := promtoolPath()
	if err != nil {
		t.Fatalf("promtool: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// dashboard is what matters of a dashboard of Grafana.
type dashboard struct {
	Panels []struct {
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile("../../examples/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// queries are those of the dashboard, with values in the place of Grafana's variables, and those of the documents.
func queries(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "5m", "$model", ".*").Replace(target.Expr))
		}
	}
	if len(all) < 30 {
		t.Errorf("the dashboard has only %d queries", len(all))
	}
	for _, text := range documents(t) {
		for _, block := range promQLBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				query, _, _ := strings.Cut(line, "#")
				if query = strings.TrimSpace(query); query != "" {
					all = append(all, query)
				}
			}
		}
	}
	return all
}

// TestPrometheus_QueriesAreValid: the queries of the documents and the dashboard are such that Prometheus takes them, as rules.
func TestPrometheus_QueriesAreValid(t *testing.T) {
	t.Parallel()
	var rules strings.Builder
	rules.WriteString("groups:\n- name: queries\n  rules:\n")
	for i, query := range queries(t) {
		fmt.Fprintf(&rules, "  - {record: \"query:%d\", expr: %s}\n", i, strconv.Quote(query))
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, ".", "check", "rules", file)
}

func TestPrometheus_Alerts(t *testing.T) {
	t.Parallel()
	promtool(t, "../../examples", "check", "rules", "alerts.yml")
	promtool(t, "../../examples", "test", "rules", "alerts_test.yml")
}

// TestPrometheus_SeriesAreValid: Prometheus' own linter finds nothing wrong with what is served.
func TestPrometheus_SeriesAreValid(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	path, err := promtoolPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "check", "metrics")
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var served = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// TestPrometheus_SeriesExist: the dashboard and the alerts name series that are served.
func TestPrometheus_SeriesExist(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("../testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, m := range served.FindAllStringSubmatch(string(golden), -1) {
		kinds[m[1]] = m[2]
	}
	alerts, err := os.ReadFile("../../examples/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../examples/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	d := readDashboard(t)
	for _, text := range append(queries(t), string(alerts), string(tests), d.Templating.List[1].Definition) {
		for _, name := range metricName.FindAllString(text, -1) {
			base, isPart := name, false
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if cut, ok := strings.CutSuffix(name, suffix); ok && kinds[cut] == "histogram" {
					base, isPart = cut, true
				}
			}
			isProse := text == string(alerts) // which may name a histogram as a whole
			if kinds[base] == "" || kinds[base] == "histogram" && !isPart && !isProse {
				t.Errorf("there is no series %s: %s", name, text)
			}
		}
	}
}

var wordLabel = regexp.MustCompile(`\b(outcome|kind|dialect)=~?\\?"([a-z_0-9|]+)\\?"`)

// TestPrometheus_WordsExist: the values of labels that alerts and the dashboard ask for are some that requests can have.
func TestPrometheus_WordsExist(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile("../../examples/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{"outcome": slices.Concat(record.ErrorKinds(), record.UsualOutcomes(), []string{"ok", "error", "failed"}), "kind": record.ErrorKinds(), "dialect": api.DialectNames()}
	found := 0
	for _, m := range wordLabel.FindAllStringSubmatch(string(alerts)+strings.Join(queries(t), "\n"), -1) {
		for word := range strings.SplitSeq(m[2], "|") {
			if found++; !slices.Contains(known[m[1]], word) {
				t.Errorf("no %s is %s: %s", m[1], word, m[0])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d words are asked for", found)
	}
}

// TestPrometheus_PanelsDoNotOverlap: Grafana would move them.
func TestPrometheus_PanelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	taken := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if x >= 24 || taken[[2]int{x, y}] != "" {
					t.Fatalf("%q is in the place of %q", p.Title, taken[[2]int{x, y}])
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
