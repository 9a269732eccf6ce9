package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A service searches for programs in the folders of its user's path, unless others can put programs there, or they end with the session.
func TestSearchPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	session := filepath.Join(dir, "session")
	t.Setenv("XDG_RUNTIME_DIR", session)
	program := func(name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	nodes, tools, others := program("node 20/npx", 0o700), program("tools/my-mcp", 0o700), program("others/ls", 0o700)
	public := program("public/npx", 0o700)
	if err := os.Chmod(public, 0o777); err != nil {
		t.Fatal(err)
	}
	twoLines := program("a\nExecStartPre=x/npx", 0o700)
	passing := program("session/x/npx", 0o700)
	if err := os.Symlink(tools, filepath.Join(session, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(nodes) // "." has npx
	for name, c := range map[string]struct {
		path []string
		want string
	}{
		"standard folders":                        {[]string{"/usr/bin", "/bin"}, "/usr/bin:/bin"},
		"one with npx, in the user's order":       {[]string{nodes, "/usr/bin"}, nodes + ":/usr/bin"},
		"another":                                 {[]string{others, "/usr/bin"}, others + ":/usr/bin"},
		"one in which everybody can put programs": {[]string{public, "/usr/bin"}, "/usr/bin"},
		"one with two lines":                      {[]string{twoLines, "/usr/bin"}, "/usr/bin"},
		"the current folder":                      {[]string{"", ".", "bin", "/usr/bin"}, "/usr/bin"},
		"one twice":                               {[]string{"/usr/bin", nodes, "/usr/bin"}, "/usr/bin:" + nodes},
		"one that ends with the session":          {[]string{passing, "/usr/bin"}, "/usr/bin"},
		"a link that ends with the session":       {[]string{filepath.Join(session, "link"), "/usr/bin"}, tools + ":/usr/bin"},
		"nothing":                                 {nil, ""},
	} {
		if got := searchPath(strings.Join(c.path, ":")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
