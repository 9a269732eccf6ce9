package families

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestFamilies asks each model everything, one model after the other.
func TestFamilies(t *testing.T) {
	h := harness.NewHome(t)
	config := harness.Config{Engine: []string{"parallel 1"}}
	keys := slices.Sorted(maps.Keys(families))
	if *folder == "" {
		for key, f := range families {
			shape := f.shape
			shape.Template = f.template
			h.AddRandom(key, shape, 1)
		}
	} else {
		config.LM = []string{"max_loaded 1", fmt.Sprintf("models_dir %q", *folder)}
	}
	s := harness.Start(h, config)
	if *folder != "" {
		keys = keysOf(s)
	}
	var rows strings.Builder
	for _, key := range keys {
		t.Run(key, func(t *testing.T) {
			a := asker{s.In(t), key}
			fmt.Fprintf(&rows, "| %s |", key)
			for _, check := range checks {
				mark := "yes"
				if err := check.do(a); err != nil {
					t.Errorf("%s: %v", check.name, err)
					mark = "**no**"
				}
				fmt.Fprintf(&rows, " %s |", mark)
			}
			rows.WriteByte('\n')
		})
	}
	if *table != "" {
		writeTable(t, rows.String())
	}
}

// keysOf returns the models of the folder.
func keysOf(s *harness.Server) (keys []string) {
	for _, m := range s.Get("/api/v1/models").Get("models").Array() {
		if key := m.Get("key").Str; m.Get("type").Str == "llm" && key != harness.Model {
			keys = append(keys, key)
		}
	}
	return keys
}

// writeTable replaces the table in a document, which is between two comments.
func writeTable(t *testing.T, rows string) {
	t.Helper()
	const from, to = "<!-- families -->\n", "<!-- /families -->"
	path := filepath.Clean(*table)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, isThere := strings.Cut(string(content), from)
	_, after, isEnded := strings.Cut(rest, to)
	if !isThere || !isEnded {
		t.Fatalf("%s has no place for the table", path)
	}
	head, line := "| model |", "|---|"
	for _, check := range checks {
		head += " " + check.name + " |"
		line += "---|"
	}
	made := before + from + head + "\n" + line + "\n" + rows + to + after
	if err := os.WriteFile(path, []byte(made), 0o600); err != nil {
		t.Fatal(err)
	}
}
