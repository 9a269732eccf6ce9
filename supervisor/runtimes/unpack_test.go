package runtimes

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func zipArchive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		content := e.content
		if e.link != "" {
			header.SetMode(fs.ModeSymlink | 0o777)
			content = e.link
		} else if e.mode != 0 {
			header.SetMode(fs.FileMode(e.mode))
		}
		file, err := writer.CreateHeader(header)
		must(t, err)
		_, err = file.Write([]byte(content))
		must(t, err)
	}
	must(t, writer.Close())
	return archive.Bytes()
}

func TestUnpack_RefusesWhatLeadsOutside(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		entries []entry
	}{
		{"parent", []entry{{name: "../x", content: "x"}}},
		{"parent in the middle", []entry{{name: "a/../../x", content: "x"}}},
		{"absolute", []entry{{name: "/tmp/x", content: "x"}}},
		{"absolute link", []entry{{name: "x", link: "/etc/passwd"}}},
		{"absolute link to nothing", []entry{{name: "x", link: "/nothing/there"}}},
		{"link to the parent", []entry{{name: "a/x", link: "../../x"}}},
		{"link by way of a link", []entry{{name: "a", link: "."}, {name: "b", link: "a/.."}, {name: "c", link: "a/b/.."}}},
		{"writing through a link", []entry{{name: "a", link: ".."}, {name: "a/x", content: "x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for suffix, archive := range map[string][]byte{".tar.gz": tarGzip(t, test.entries...), ".zip": zipArchive(t, test.entries...)} {
				parent := t.TempDir()
				file := filepath.Join(t.TempDir(), "archive"+suffix)
				must(t, os.WriteFile(file, archive, 0o644))
				dir := filepath.Join(parent, "dir")
				must(t, os.Mkdir(dir, 0o755))
				if err := unpack(t.Context(), file, dir); err == nil {
					t.Errorf("%s: unpacked", suffix)
				}
				same(t, "beside the folder", contents(t, parent), []string{"dir"})
			}
		})
	}
	file := filepath.Join(t.TempDir(), "archive.tar.gz")
	must(t, os.WriteFile(file, tarGzip(t, entry{name: "x", link: "../../../etc/passwd", hard: true}), 0o644))
	contains(t, unpack(t.Context(), file, t.TempDir()), "refused")
}

func TestUnpack_KeepsLinksAndModes(t *testing.T) {
	t.Parallel()
	entries := []entry{
		{name: "build/bin/llama-server", content: "server", mode: 0o755},
		{name: "build/bin/libllama.so", content: "library", mode: 0o644},
		{name: "build/lib/libllama.so.0", link: "../bin/libllama.so"},
	}
	for suffix, archive := range map[string][]byte{".tar.gz": tarGzip(t, entries...), ".zip": zipArchive(t, entries...)} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			file, dir := filepath.Join(t.TempDir(), "archive"+suffix), t.TempDir()
			must(t, os.WriteFile(file, archive, 0o644))
			must(t, unpack(t.Context(), file, dir))
			info, err := os.Stat(filepath.Join(dir, "build/bin/llama-server"))
			must(t, err)
			same(t, "mode", info.Mode(), fs.FileMode(0o755))
			text, err := os.ReadFile(filepath.Join(dir, "build/lib/libllama.so.0"))
			must(t, err)
			same(t, "content by way of the link", string(text), "library")
		})
	}
}

func TestUnpack_IsInterruptible(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "archive.tar.gz")
	must(t, os.WriteFile(file, goodArchive(t, 1), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unpack(ctx, file, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("unpacking went on: %v", err)
	}
}

func TestFindServer_NearestTheTopAndExecutable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/b/llama-server", "z/llama-server"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	found, err := findServer(dir)
	must(t, err)
	same(t, "found", found, filepath.Join("z", "llama-server"))
	must(t, checkExecutable(filepath.Join(dir, found)))
}
