package command

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// documents are those of the repository, by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	shellBlock   = regexp.MustCompile("(?s)```sh(?: no-run)?\n(.*?)```")
	promQLBlock  = regexp.MustCompile("(?s)```promql\n(.*?)```")
	quotedText   = regexp.MustCompile(`"[^"]*"`)
	metricName   = regexp.MustCompile(`\blm_[a-z_]+\b`)
)

// anchors are those of a document's headings, as they are made where it is shown.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func TestDocuments_LinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, text := range documents(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", file, m[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			content, err := os.ReadFile(target)
			if err != nil || !slices.Contains(anchors(string(content)), anchor) {
				t.Errorf("%s: %s: there is no such heading; %v", file, m[1], err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d links were found", seen)
	}
}

// TestDocuments_CommandsExist: what the documents have people type are commands and flags that there are.
func TestDocuments_CommandsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, text := range documents(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				words := strings.Fields(quotedText.ReplaceAllString(line, "text"))
				if len(words) < 2 || filepath.Base(words[0]) != "lmcaddy" {
					continue
				}
				seen++
				if problem := wrongCommand(words[1:]); problem != "" {
					t.Errorf("%s: %s: %s", file, line, problem)
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d commands were found", seen)
	}
}

// wrongCommand says what is wrong with a command line, if anything.
func wrongCommand(words []string) string {
	known, ok := caddycmd.Commands()[words[0]]
	if !ok {
		return "there is no such command"
	}
	root := &cobra.Command{Use: words[0], Run: func(*cobra.Command, []string) {}}
	if known.CobraFunc != nil {
		known.CobraFunc(root)
	}
	cmd, rest, err := root.Find(words[1:])
	if err != nil {
		return err.Error()
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() {
		return "it takes a sub-command"
	}
	if cmd.Args != nil {
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			return err.Error()
		}
	}
	return ""
}

// TestDocuments_MetricsExist: the questions to Prometheus are about series that there are, and their two sides have the same
// labels: what is summed has none, and what isn't has those of the scrape at least.
func TestDocuments_MetricsExist(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("../testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	questions := 0
	for file, text := range documents(t) {
		for _, block := range promQLBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				query, _, _ := strings.Cut(line, "#")
				names := metricName.FindAllString(query, -1)
				if len(names) == 0 {
					continue
				}
				questions++
				for _, name := range names {
					if !strings.Contains(string(golden), "# TYPE "+name+" ") {
						t.Errorf("%s: there is no series %s: %s", file, name, query)
					}
				}
				left, right, isRatio := strings.Cut(query, " / ")
				if isRatio && strings.HasPrefix(left, "sum(") != strings.HasPrefix(strings.TrimSpace(right), "sum(") {
					t.Errorf("%s: the sides have other labels, so this is always empty: %s", file, query)
				}
			}
		}
	}
	if questions < 4 {
		t.Errorf("only %d questions were found", questions)
	}
}
