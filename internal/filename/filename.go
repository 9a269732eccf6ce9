// Package filename has the rules for the names of model files and of the folders that they are in: which names are safe on
// every system, and what the name of a GGUF file says. The catalog and the downloads share them.
package filename

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNameBytes leaves room for the suffixes of temporary files within the 255 bytes that file systems allow.
	maxNameBytes = 240
	maxPathBytes = 1024
)

var (
	// device matches the names of devices on Windows, with any extension.
	device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)`)

	// folder matches the names that hubs allow for publishers and repositories.
	folder = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
)

// Local converts a slash-separated path from elsewhere into a path of this system. It refuses a path that could lead out of
// the folder that it is relative to, on this system or on another that the folder may be copied to.
func Local(path string) (string, error) {
	if path == "" || len(path) > maxPathBytes {
		return "", fmt.Errorf("a path of %d bytes", len(path))
	}
	for segment := range strings.SplitSeq(path, "/") {
		if err := check(segment); err != nil {
			return "", err
		}
	}
	local := filepath.FromSlash(path)
	if !filepath.IsLocal(local) { // the system may know more than check
		return "", fmt.Errorf("%q leads outside of the folder", path)
	}
	return local, nil
}

// CheckFolder refuses a name that a publisher or a repository can't have on a hub, or that can't be the name of a folder on every system.
func CheckFolder(name string) error {
	if !folder.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%q is not the name of a publisher or repository", name)
	}
	return check(name)
}

// check refuses a name that a file or folder can't or shouldn't have on some system.
func check(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("the name %q leads elsewhere", name)
	case len(name) > maxNameBytes:
		return fmt.Errorf("a name of %d bytes", len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q isn't UTF-8", name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Errorf("the name %q holds a sign that means something to a system", name)
	case strings.ContainsFunc(name, IsInvisible):
		return fmt.Errorf("the name %q holds control characters", name)
	case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q begins or ends with what some systems drop", name)
	case device.MatchString(name):
		return fmt.Errorf("the name %q is a device's", name)
	}
	return nil
}

// IsInvisible reports whether r is a control character, or changes the direction or form of the characters around it.
func IsInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == '\x7f'
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// TrimEnding removes the first of the endings that a name has, in any case. A name that is nothing else stays.
func TrimEnding(name string, endings ...string) string {
	for _, ending := range endings {
		if n := len(name) - len(ending); n > 0 && strings.EqualFold(name[n:], ending) {
			return name[:n]
		}
	}
	return name
}
