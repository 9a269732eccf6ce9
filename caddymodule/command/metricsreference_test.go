package command

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// metricsFile is made by this test with -update, from what a scrape says of each series.
const metricsFile = "../../docs/metrics.md"

const metricsIntro = `# Metrics

This page is made from what ` + "`/metrics`" + ` says of each series (` + "`make reference`" + `). [Operation](operation.md#metrics) says where that is served, and has
useful queries. A counter begins with the process, and a reload doesn't reset it.

| series | kind | labels | meaning |
|---|---|---|---|
`

var (
	seriesHelp  = regexp.MustCompile(`(?m)^# HELP (\S+) (.+)\n# TYPE \S+ (\S+)$`)
	seriesLabel = regexp.MustCompile(`([a-z_]+)="`)
)

func makeMetrics(scrape string) string {
	var b strings.Builder
	b.WriteString(metricsIntro)
	for _, m := range seriesHelp.FindAllStringSubmatch(scrape, -1) {
		sample := regexp.MustCompile(`(?m)^` + m[1] + `(?:_bucket)?\{(.*)\} \S+$`).FindStringSubmatch(scrape)
		var labels []string
		if sample != nil {
			for _, l := range seriesLabel.FindAllStringSubmatch(sample[1], -1) {
				if l[1] != "le" {
					labels = append(labels, "`"+l[1]+"`")
				}
			}
		}
		slices.Sort(labels)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m[1], m[3], strings.Join(labels, ", "), m[2])
	}
	return b.String()
}

// The page about the metrics is as a scrape says.
func TestReference_Metrics(t *testing.T) {
	t.Parallel()
	scrape, err := os.ReadFile("../testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	got := makeMetrics(string(scrape))
	testkit.Golden(t, metricsFile, []byte(got))
}
