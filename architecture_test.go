package lmcaddy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	step       = regexp.MustCompile("^[0-9]+\\. `([a-z0-9]+)\\.([A-Za-z.]+)` \\(([a-z0-9/_]+\\.go)\\): ")
	folderName = regexp.MustCompile(`^(?:[a-z0-9]+/)+$`)
)

// TestArchitecture_NamesExist: each function of the lists in docs/architecture.md is in the file that stands beside it, and each folder of
// the layout exists. The document is one that can be read at once.
func TestArchitecture_NamesExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > 250 {
		t.Errorf("%d lines; at most 250 are read", len(lines))
	}
	steps, section := map[string]int{}, ""
	isLayout, folders, parent := false, 0, ""
	for i, line := range lines {
		if utf8.RuneCountInString(line) > 140 {
			t.Errorf("line %d is longer than 140 characters", i+1)
		}
		switch {
		case strings.HasPrefix(line, "```"):
			isLayout = !isLayout
		case isLayout:
			for _, folder := range leadingFolders(line) {
				if strings.HasPrefix(line, " ") {
					folder = parent + folder
				} else {
					parent = folder
				}
				if _, err := os.Stat(folder); err != nil {
					t.Errorf("line %d: %v", i+1, err)
				}
				folders++
			}
		case strings.HasPrefix(line, "### "):
			section = line
		case step.MatchString(line):
			m := step.FindStringSubmatch(line)
			if steps[section]++; !declares(t, m[3], m[1], m[2]) {
				t.Errorf("line %d: %s has no function %s.%s", i+1, m[3], m[1], m[2])
			}
		}
	}
	for name, n := range steps {
		if n < 10 || n > 25 {
			t.Errorf("%s: %d functions", name, n)
		}
	}
	if len(steps) != 4 || folders < 40 {
		t.Errorf("%d lists of functions, %d folders", len(steps), folders)
	}
}

// leadingFolders are the folders with which a line of the layout begins.
func leadingFolders(line string) (all []string) {
	for word := range strings.FieldsSeq(line) {
		if !folderName.MatchString(word) {
			break
		}
		all = append(all, word)
	}
	return all
}

// declares reports whether a file of a package has a function, or a method such as Type.Name.
func declares(t *testing.T, file, pkg, name string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		declared := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if named, ok := receiver.(*ast.Ident); ok {
				declared = named.Name + "." + declared
			}
		}
		if declared == name {
			return parsed.Name.Name == pkg
		}
	}
	return false
}
