package home

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFromEnvironment_Tilde(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	t.Setenv(Variable, "~/models")
	if dir, err := FromEnvironment(); err != nil || runtime.GOOS != "windows" && dir != "/home/ann/models" {
		t.Errorf("%s, error %v", dir, err)
	}
}

func TestFromEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(dir, "gone")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), gone); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, says string }{
		"a folder":           {dir, ""},
		"one that isn't yet": {filepath.Join(dir, "new", "one"), ""},
		"a file":             {file, "it is a file"},
		"below a file":       {filepath.Join(file, "home"), "can't be the home folder"},
		"a link to nothing":  {gone, "it is a link to a folder that doesn't exist"},
		"a long name":        {filepath.Join(dir, strings.Repeat("x", 300)), "can't be the home folder"},
		"for a terminal":     {filepath.Join(file, "\x1b[2J"), `\x1b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && !strings.HasPrefix(tt.says, "it is") {
				return // the system says that such a file doesn't exist
			}
			t.Setenv(Variable, tt.path)
			got, err := FromEnvironment()
			if string(got) != tt.path || (err == nil) != (tt.says == "") {
				t.Fatalf("%q, error %v", got, err)
			}
			if err != nil && (!errors.As(err, new(*UnusableError)) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("error %v", err)
			}
		})
	}
}
