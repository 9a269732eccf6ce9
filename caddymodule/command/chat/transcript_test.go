package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

func TestExportTo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ünï cödé.md")
	c := &resource.Conversation{Title: "first", Updated: new(resource.Time)}
	if err := exportTo(path, exported{[]resource.Conversation{*c}, true}, formatMarkdown, false); err != nil {
		t.Fatal(err)
	}
	c.Title = "second"
	if err := exportTo(path, exported{[]resource.Conversation{*c}, true}, formatMarkdown, false); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# first\n") {
		t.Errorf("the file is %q, error %v", text, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := exportTo(path, exported{[]resource.Conversation{*c}, true}, formatMarkdown, true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# second\n") {
		t.Errorf("the file is %q, error %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others can read it: %v, error %v", info.Mode(), err)
	}
}
