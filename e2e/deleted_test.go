package e2e

import (
	"bytes"
	"encoding/base64"
	"image/color"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// filesWith returns the files of a home that contain some bytes.
func filesWith(t *testing.T, home *harness.Home, wanted []byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(home.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // also for files that were deleted meanwhile
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, wanted) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStore_WhatIsDeletedIsGone searches the files of a running server's home for what was deleted.
func TestStore_WhatIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	home := withVision(t)
	s := harness.Start(home, harness.Config{})
	const first, second = "the first secret is 4711", "the second secret is 4712"
	picture := picture(t, color.RGBA{R: 255, A: 255})
	seen := s.NativeChat(harness.NativeAsk("").With("model", visionModel).With("max_output_tokens", 4).With("input", []any{
		harness.Fields{"type": "text", "content": first + strings.Repeat(" and more", 50)}, picture,
	})).Get("response_id").Str
	next := s.NativeChat(harness.NativeAsk(second).With("model", visionModel).With("max_output_tokens", 4).After(seen)).Get("response_id").Str
	_, encoded, _ := strings.Cut(picture["data_url"].(string), ",")
	image, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{"the first text": []byte(first), "the second text": []byte(second), "the image": image[40:120]}
	for name, secret := range secrets {
		if len(filesWith(t, home, secret)) == 0 {
			t.Fatalf("%s isn't stored", name)
		}
	}

	s.Do(http.MethodDelete, harness.ResponsesPath+seen, nil).Want(t, http.StatusOK)
	if len(filesWith(t, home, secrets["the first text"])) == 0 {
		t.Error("what another response continues was deleted")
	}
	s.Do(http.MethodDelete, harness.ResponsesPath+next, nil).Want(t, http.StatusOK)
	for name, secret := range secrets {
		end := time.Now().Add(harness.Patience)
		for left := filesWith(t, home, secret); left != nil; left = filesWith(t, home, secret) {
			if time.Now().After(end) {
				t.Fatalf("%s is still in %v", name, left)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
