package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The most words that people have to read. Who adds some takes others away.
const (
	wordsInAll      = 35000
	wordsInREADME   = 600
	wordsInSECURITY = 2000
)

// Documents, and parts of them, that are made from the code, or recorded by tests.
var (
	madeDocuments = []string{"docs/caddyfile.md", "docs/commands.md", "docs/metrics.md", "docs/api/endpoints.md", "docs/api/fields.md", "docs/first-hour.md"}
	madePart      = regexp.MustCompile(`(?s)<!-- (keywords|families|make \w+) -->.*?<!-- (?:end of |/)(?:keywords|families|make \w+) -->`)
)

// countWords counts what has a letter or a digit in it, so that the borders of tables don't count.
func countWords(text string) (n int) {
	for field := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// TestDocuments_AreShort: nobody reads a long document.
func TestDocuments_AreShort(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*.md")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	bounds := map[string]int{"README.md": wordsInREADME, "SECURITY.md": wordsInSECURITY}
	all, seen := 0, 0
	for file := range strings.FieldsSeq(string(out)) {
		if slices.Contains(madeDocuments, file) {
			continue
		}
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		n := countWords(madePart.ReplaceAllString(string(text), ""))
		seen++
		all += n
		if bound, ok := bounds[file]; ok && n > bound {
			t.Errorf("%s has %d words, %d at most", file, n, bound)
		}
	}
	if seen < 30 {
		t.Errorf("only %d documents were found", seen)
	}
	if all > wordsInAll {
		t.Errorf("the documents have %d words, %d at most", all, wordsInAll)
	}
}

// Nothing is published yet, so documents say how to build lmcaddy, and name no page of it. Recipes that give a client a token say
// what that can't do.
func TestDocuments_NameWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(madeDocuments, strings.TrimPrefix(file, "../../")) && strings.Contains(string(text), "://github.com/lmcaddy") {
				t.Errorf("%s names a page that doesn't answer", file)
			}
			isRecipe := filepath.Base(filepath.Dir(file)) == "recipes" && filepath.Base(file) != "lan.md"
			if isRecipe && strings.Contains(string(text), "--scopes inference") && !strings.Contains(string(text), "](lan.md#tokens)") {
				t.Errorf("%s gives a token, and doesn't say what it can't do", file)
			}
		}
	}
}
