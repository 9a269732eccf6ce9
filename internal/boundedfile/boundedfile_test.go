package boundedfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"four": "1234", "five": "12345"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, isRead := range map[string]bool{"four": true, "five": false, ".": false, "missing": false} {
		text, err := Read(filepath.Join(dir, name), 4)
		if (err == nil) != isRead || isRead && string(text) != "1234" {
			t.Errorf("%s: %q, error %v", name, text, err)
		}
	}
}
