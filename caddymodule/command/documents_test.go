package command

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// documents are those of the repository, by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
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
	fencedBlock  = regexp.MustCompile("(?ms)^```.*?^```$")
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
				for len(words) > 0 && strings.Contains(words[0], "=") { // a variable for the command
					words = words[1:]
				}
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
	cmd, problem := namedCommand(words)
	switch {
	case problem != "":
		return problem
	case cmd.HasSubCommands():
		return "it takes a sub-command"
	case cmd.Args != nil:
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			return err.Error()
		}
	}
	return ""
}

// namedCommand returns the command of a command line, or what is wrong with its name or its flags.
func namedCommand(words []string) (*cobra.Command, string) {
	known, ok := caddycmd.Commands()[words[0]]
	if !ok {
		return nil, "there is no such command"
	}
	root := &cobra.Command{Use: words[0], Run: func(*cobra.Command, []string) {}}
	if known.CobraFunc != nil {
		known.CobraFunc(root)
	}
	cmd, rest, err := root.Find(words[1:])
	if err != nil {
		return nil, err.Error()
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, err.Error()
	}
	return cmd, ""
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
					name = strings.TrimSuffix(name, "_bucket")
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

var (
	errorCode    = regexp.MustCompile(`(?:\bCode: |\bInvalid\(|\bcode[ :]?= |\{[45]\d\d, )"([a-z_]+)"`)
	inBackquotes = regexp.MustCompile("`([a-z_]+)`")
	codeRow      = regexp.MustCompile("(?m)^\\| \\d+ \\| (`.*?) \\|")
)

// TestDocuments_ErrorCodes: each code of an error that clients may get is in the documents of the API, and those in their tables exist.
func TestDocuments_ErrorCodes(t *testing.T) {
	t.Parallel()
	described := ""
	for file, text := range documents(t) {
		if filepath.Base(filepath.Dir(file)) == "api" || slices.Contains([]string{"api.md", "mcp.md"}, filepath.Base(file)) {
			described += text
		}
	}
	code := sources(t)
	codes := errorCode.FindAllStringSubmatch(code, -1)
	if len(codes) < 50 {
		t.Errorf("only %d codes were found", len(codes))
	}
	for _, m := range codes {
		if !strings.Contains(described, "`"+m[1]+"`") {
			t.Errorf("no document has the code %s", m[1])
		}
	}
	for _, row := range codeRow.FindAllStringSubmatch(documents(t)["../../docs/api/errors.md"], -1) {
		for _, m := range inBackquotes.FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(code, `"`+m[1]+`"`) {
				t.Errorf("no error has the code %s", m[1])
			}
		}
	}
}

// mentionedCommand matches a command in a sentence.
var mentionedCommand = regexp.MustCompile("`(?:bin/)?lmcaddy ([a-z][^`…|\\[]*)`")

// TestDocuments_MentionedCommandsExist: the commands in sentences exist, with their flags; their arguments may be left out.
func TestDocuments_MentionedCommandsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, text := range documents(t) {
		text = fencedBlock.ReplaceAllString(text, "")
		for _, m := range mentionedCommand.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(quotedText.ReplaceAllString(m[1], "text"))
			seen++
			if _, problem := namedCommand(words); problem != "" && words[0] != "help" {
				t.Errorf("%s: %s: %s", file, m[0], problem)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands were found", seen)
	}
}

// TestDocuments_FieldsOfTheNativeAPI: each field and parameter of the OpenAPI document is in the documents.
func TestDocuments_FieldsOfTheNativeAPI(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	described := strings.Builder{}
	for _, text := range documents(t) {
		described.WriteString(text)
	}
	names := map[string]bool{}
	var collect func(value gjson.Result)
	collect = func(value gjson.Result) {
		value.Get("properties").ForEach(func(name, _ gjson.Result) bool {
			names[name.Str] = true
			return true
		})
		if value.Get("in").Str == "query" {
			names[value.Get("name").Str] = true
		}
		if value.IsObject() || value.IsArray() {
			value.ForEach(func(_, inner gjson.Result) bool {
				collect(inner)
				return true
			})
		}
	}
	collect(gjson.ParseBytes(schema))
	if len(names) < 150 {
		t.Errorf("only %d names were found", len(names))
	}
	for name := range names {
		if !strings.Contains(described.String(), "`"+name+"`") && !strings.Contains(described.String(), `"`+name+`"`) {
			t.Errorf("no document has the field %s", name)
		}
	}
}

var (
	namedTest   = regexp.MustCompile("`(Test[A-Za-z_]+)(\\*?)`")
	definedTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestDocuments_TestsOfPromisesExist: the tests that hold the promises of SECURITY.md exist.
func TestDocuments_TestsOfPromisesExist(t *testing.T) {
	t.Parallel()
	var defined []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range definedTest.FindAllStringSubmatch(string(text), -1) {
			defined = append(defined, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllStringSubmatch(documents(t)["../../SECURITY.md"], -1)
	if len(named) < 30 {
		t.Errorf("only %d tests were found", len(named))
	}
	for _, m := range named {
		if !slices.ContainsFunc(defined, func(name string) bool { return name == m[1] || m[2] != "" && strings.HasPrefix(name, m[1]) }) {
			t.Errorf("there is no test %s%s", m[1], m[2])
		}
	}
}
