package node

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// absolutePath is a path in a text: what stands before it, its folders and its last element. Quotes, brackets and spaces end
// one; those that are in the names of our own folders are known.
var absolutePath = regexp.MustCompile(`(^|[\s"'` + "`" + `(=\[,])((?:[A-Za-z]:)?[/\\](?:[^\s"'` + "`" + `()\[\],;|]*[/\\])?)([^\s"'` + "`" + `()\[\],;|/\\]*)`)

// quotedPath is one in quotes, which may have spaces and what else ends others.
var quotedPath = regexp.MustCompile(`(['"])(?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]([^'"/\\\n]*)['"]`)

// HidePaths takes the folders of this machine out of a text that is for clients. Of a path its last element is left.
func (n *Node) HidePaths(text string) string {
	if !strings.ContainsAny(text, `/\`) {
		return text
	}
	s := n.settings.Load()
	folders := append([]string{string(n.home)}, s.ModelsDirs...)
	for _, e := range s.Engines {
		if e.Path != "" {
			folders = append(folders, filepath.Dir(e.Path))
		}
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, folder := range folders {
		if separator := string(filepath.Separator); folder != separator && filepath.IsAbs(folder) {
			text = strings.ReplaceAll(text, folder+separator, separator)
			text = strings.ReplaceAll(text, folder, separator+filepath.Base(folder))
		}
	}
	text = quotedPath.ReplaceAllString(text, "$1$2$1")
	return absolutePath.ReplaceAllStringFunc(text, func(found string) string {
		m := absolutePath.FindStringSubmatch(found)
		if path := m[2] + m[3]; strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/") {
			return found // an endpoint
		}
		return m[1] + m[3]
	})
}
