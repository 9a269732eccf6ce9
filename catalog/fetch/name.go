package fetch

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNameBytes leaves room for the endings of partial files within the 255 bytes that file systems allow.
	maxNameBytes = 240
	maxPathBytes = 1024
)

// reserved are the names that mean devices on Windows, with any ending.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)`)

// localPath is a path that a server gave, as a path of this system below the folder of a model. Whatever could lead
// elsewhere, on this system or on the one that the folder is copied to, is refused.
func localPath(path string) (string, error) {
	if path == "" || len(path) > maxPathBytes {
		return "", fmt.Errorf("a path of %d bytes", len(path))
	}
	for segment := range strings.SplitSeq(path, "/") {
		if err := checkName(segment); err != nil {
			return "", err
		}
	}
	local := filepath.FromSlash(path)
	if !filepath.IsLocal(local) { // what the system knows beyond the rules above
		return "", fmt.Errorf("%q leads outside of the folder", path)
	}
	return local, nil
}

// checkName refuses what can't be, or shouldn't be, the name of one file or folder everywhere.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("the name %q leads elsewhere", name)
	case len(name) > maxNameBytes:
		return fmt.Errorf("a name of %d bytes", len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q isn't UTF-8", name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Errorf("the name %q holds a sign that means something to a system", name)
	case strings.ContainsFunc(name, isInvisible):
		return fmt.Errorf("the name %q holds control characters", name)
	case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q begins or ends with what some systems drop", name)
	case reserved.MatchString(name):
		return fmt.Errorf("the name %q is a device's", name)
	case strings.HasSuffix(strings.ToLower(name), partSuffix), strings.HasSuffix(strings.ToLower(name), checkpointSuffix):
		return fmt.Errorf("the name %q is one of a partial file", name)
	}
	return nil
}

// isInvisible is true for control characters, and for those that turn the order of the others about.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// repoPart is a publisher's or a repository's name, as the hub allows them.
var repoPart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

// checkRepo tells whether publisher/repository can be a repository of a hub, and the name of a folder.
func checkRepo(publisher, repo string) error {
	for _, name := range []string{publisher, repo} {
		if !repoPart.MatchString(name) || strings.Contains(name, "..") {
			return fmt.Errorf("%q is no name of a publisher or repository", name)
		}
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

var revisionPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// checkRevision tells whether a name can be a branch, a tag or a commit.
func checkRevision(revision string) error {
	bad := func(part string) bool { return !revisionPart.MatchString(part) || strings.Contains(part, "..") }
	if slices.ContainsFunc(strings.Split(revision, "/"), bad) {
		return fmt.Errorf("%q is no name of a revision", revision)
	}
	return nil
}
