package bench

import (
	"fmt"
	"os"
	"strings"
)

// document is where the tables are that commands make. Paths are relative to the module's folder: see TestMain.
const document = "../docs/performance.md"

// The commands that make tables.
const (
	benchCommand   = "make bench"
	profileCommand = "make profile"
)

// replaceInDocument replaces what a command has made of the document.
func replaceInDocument(command, text string) error {
	content, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, after, err := around(string(content), command)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+"\n"+strings.TrimSpace(text)+"\n\n"+after), 0o644) //nolint:gosec // the document is public
}

// madeBy returns what a command has made of the document.
func madeBy(command string) (string, error) {
	content, err := os.ReadFile(document)
	if err != nil {
		return "", err
	}
	before, after, err := around(string(content), command)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(content[len(before) : len(content)-len(after)])), nil
}

// around returns what is before and after the part that a command makes, with the marks.
func around(content, command string) (before, after string, err error) {
	begin, end := fmt.Sprintf("<!-- %s -->\n", command), fmt.Sprintf("<!-- end of %s -->", command)
	i, j := strings.Index(content, begin), strings.Index(content, end)
	if i < 0 || j < i {
		return "", "", fmt.Errorf("%s has no lines %q and %q around the tables of %s", document, begin, end, command)
	}
	return content[:i+len(begin)], content[j:], nil
}
