//go:build unix

package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is open for writing can't be started. Ask retries until it is closed.
func TestAsk_WaitsForABusyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "llama-server")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'version: 0.7.0 (build 17, commit x)'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	release := time.AfterFunc(30*time.Millisecond, func() { _ = writer.Close() })
	defer release.Stop()
	if output, err := Ask(t.Context(), path, "--version"); err != nil || LlamaVersion(output) != "b17" {
		t.Errorf("output %q, error %v", output, err)
	}
}
