package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var date = time.Date(2026, 11, 23, 1, 2, 4, 0, time.UTC) // zip has even seconds

// The same files give the same bytes, whatever their order, dates and modes.
func TestWriteArchive(t *testing.T) {
	t.Parallel()
	want := []string{"folder/LICENSE -rw-r--r-- license", "folder/lmcaddy -rwxr-xr-x program", "folder/man/a.8 -rw-r--r-- page"}
	for _, name := range []string{"a.tar.gz", "a.zip"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written [2][]byte
			for i := range written {
				dir := t.TempDir()
				files := []packed{
					{"lmcaddy", filepath.Join(dir, "1"), true}, {"LICENSE", filepath.Join(dir, "2"), false}, {"man/a.8", filepath.Join(dir, "3"), false},
				}
				for j, text := range []string{"program", "license", "page"} {
					if err := os.WriteFile(files[j].from, []byte(text), []os.FileMode{0o600, 0o755}[i]); err != nil {
						t.Fatal(err)
					}
					if err := os.Chtimes(files[j].from, date, date.Add(time.Duration(i)*time.Hour)); err != nil {
						t.Fatal(err)
					}
				}
				if i == 1 {
					slices.Reverse(files)
				}
				archive := filepath.Join(dir, name)
				if err := writeArchive(archive, "folder", files, date); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, listed(t, archive)); diff != "" {
					t.Error(diff)
				}
				var err error
				if written[i], err = os.ReadFile(archive); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(written[0], written[1]) {
				t.Error("the archives differ")
			}
		})
	}
}

// listed returns the files of an archive, in its order.
func listed(t *testing.T, archive string) (files []string) {
	t.Helper()
	note := func(name string, mode os.FileMode, modified time.Time, r io.Reader) {
		t.Helper()
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !modified.Equal(date) {
			t.Errorf("%s is of %s", name, modified)
		}
		files = append(files, fmt.Sprintf("%s %s %s", name, mode, content))
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if filepath.Ext(archive) == ".zip" {
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(f, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range z.File {
			content, err := entry.Open()
			if err != nil {
				t.Fatal(err)
			}
			note(entry.Name, entry.Mode(), entry.Modified, content)
			_ = content.Close()
		}
		return files
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d:%d %s", h.Name, h.Uid, h.Gid, h.Uname)
		}
		note(h.Name, h.FileInfo().Mode(), h.ModTime, r)
	}
}
