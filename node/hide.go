package node

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// endOfPath are the characters that end a path; HidePaths handles our own folders, whose names may contain them, separately.
const endOfPath = `\s"'` + "`" + `()\[\],;|`

// absolutePath matches a path in a text: the character before it, its folders and its last element.
var absolutePath = regexp.MustCompile(
	`(^|[\s"'` + "`" + `(=\[,])((?:[A-Za-z]:)?[/\\](?:[^` + endOfPath + `]*[/\\])?)([^` + endOfPath + `/\\]*)`,
)

// quotedPath matches a path in quotes, which may contain spaces and brackets.
var quotedPath = regexp.MustCompile(`(['"])(?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]([^'"/\\\n]*)['"]`)

// HidePaths removes this machine's folders from a text for clients. Only the last element of a path remains.
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
