package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// wantNoSecrets checks that the secret halves of tokens are neither in the server's log nor in any file of its home.
func wantNoSecrets(t testing.TB, s *harness.Server, tokens ...string) {
	t.Helper()
	wantNoSecretsBut(t, s, "", tokens...)
}

// wantNoSecretsBut is wantNoSecrets, except for the files of one name.
func wantNoSecretsBut(t testing.TB, s *harness.Server, file string, tokens ...string) {
	t.Helper()
	places := map[string]string{"the log": s.Log()}
	err := filepath.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".gguf") || entry.Name() == file {
			return nil //nolint:nilerr // what has gone meanwhile keeps no secret
		}
		content, err := os.ReadFile(path)
		places[path] = string(content)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, token := range tokens {
		_, secret, _ := strings.Cut(token, ":")
		for place, content := range places {
			if strings.Contains(content, secret) {
				t.Errorf("the secret of a token is in %s", place)
			}
		}
	}
}
