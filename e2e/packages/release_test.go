package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// date is that of all files in the releases of these tests.
const date = "1763859723"

// copyCheckout copies the files of the checkout to a new folder.
func copyCheckout(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.Contains("/"+name, "/testdata/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// makeRelease makes a release of a copy of the checkout, and returns its folder.
func makeRelease(t *testing.T, version string, env []string, args ...string) string {
	t.Helper()
	source, dist := copyCheckout(t), filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./tools/release", "-source", source, "-output", dist, "-version", version}, args...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "SOURCE_DATE_EPOCH=" + date}, env...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	return dist
}

// versionOf returns the version of the program under test.
func versionOf(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "version").Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 || fields[0] != "lmcaddy" {
		t.Fatalf("%v: %s", err, out)
	}
	return fields[1]
}

// A release of a copy has the program that make has built in the checkout, byte for byte, with what belongs to it.
func TestRelease(t *testing.T) {
	t.Parallel()
	program := harness.NewBareHome(t).Program()
	version := versionOf(t, program)
	dist := makeRelease(t, version, nil, "-targets", "linux/amd64")
	archives, err := filepath.Glob(filepath.Join(dist, "lmcaddy_*_linux_amd64.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v, %v", archives, err)
	}
	root := filepath.Join(t.TempDir(), "unpacked")
	names := unpack(t, archives[0], root)
	t.Run("the program is that of make", func(t *testing.T) { sameContent(t, program, filepath.Join(root, "lmcaddy")) })
	t.Run("the archive has what belongs to it", func(t *testing.T) {
		for _, want := range []string{"LICENSE", "README.md", "THIRD-PARTY-LICENSES.txt", "completions/_lmcaddy", "completions/lmcaddy.bash", "completions/lmcaddy.fish", "man/lmcaddy.8", "man/lmcaddy-serve.8"} {
			if !slices.Contains(names, want) {
				t.Errorf("it has no %s, but %q", want, names)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", filepath.Join(root, "completions", "lmcaddy.bash")).CombinedOutput(); err != nil {
			t.Errorf("bash: %v: %s", err, out)
		}
		licenses := contentOf(t, filepath.Join(root, "THIRD-PARTY-LICENSES.txt"))
		for _, want := range []string{"\nGo 1.", "\ngithub.com/caddyserver/caddy/v2 v", "\nmodernc.org/sqlite v"} {
			if !strings.Contains(licenses, want) {
				t.Errorf("the licenses lack%q", want)
			}
		}
	})
	t.Run("the pages are of commands that work", func(t *testing.T) {
		for _, refused := range []string{"upgrade", "add-package", "remove-package"} {
			if slices.Contains(names, "man/lmcaddy-"+refused+".8") || strings.Contains(contentOf(t, filepath.Join(root, "man/lmcaddy.8")), refused) {
				t.Errorf("there is a page for %s", refused)
			}
		}
	})
	t.Run("the pages name no folder of this machine", func(t *testing.T) {
		for _, name := range names {
			if !strings.HasSuffix(name, ".8") {
				continue
			}
			text := contentOf(t, filepath.Join(root, name))
			title := `.TH "` + strings.ToUpper(strings.TrimSuffix(filepath.Base(name), ".8")) + `" "8" "Nov 2025"`
			if !strings.Contains(text, title) {
				t.Errorf("%s has no line %s", name, title)
			}
			for _, dir := range []string{os.TempDir(), "/root", os.Getenv("HOME") + "/", "Auto generated"} {
				if strings.Contains(text, dir) {
					t.Errorf("%s names %s", name, dir)
				}
			}
		}
	})
	t.Run("the checksums are those of the files", func(t *testing.T) {
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
		check.Dir = dist
		out, err := check.CombinedOutput()
		files, _ := os.ReadDir(dist)
		if lines := strings.Count(string(out), ": OK\n"); err != nil || lines != len(files)-1 {
			t.Errorf("%v: %d of %d files: %s", err, lines, len(files)-1, out)
		}
	})
	t.Run("its script installs it", func(t *testing.T) {
		m := newMachine(t)
		m.must(filepath.Join(dist, "install.sh"))
		sameContent(t, program, filepath.Join(m.home, ".local", "bin", "lmcaddy"))
	})
	t.Run("the components are listed", func(t *testing.T) {
		bom := contentOf(t, archives[0]+".cdx.json")
		if got := gjson.Get(bom, "specVersion").Str; got != "1.6" {
			t.Errorf("it is of version %q", got)
		}
		if got := gjson.Get(bom, `components.#(name=="github.com/caddyserver/caddy/v2").version`).Str; !strings.HasPrefix(got, "v2.") {
			t.Errorf("Caddy's version is %q", got)
		}
		if got := gjson.Get(bom, `components.#(name=="github.com/caddyserver/caddy/v2").licenses.0.license.id`).Str; got != "Apache-2.0" {
			t.Errorf("Caddy's license is %q", got)
		}
		if got := gjson.Get(bom, `components.#(licenses.0.license.name!="")#.name`).Array(); len(got) != 0 {
			t.Errorf("the licenses of %v aren't recognized", got)
		}
		if got := gjson.Get(bom, "metadata.component.version").Str; got != version {
			t.Errorf("it is of %q, and the program is %q", got, version)
		}
	})
}

// unpack unpacks an archive, and returns the names of its files below its one folder.
func unpack(t *testing.T, archive, to string) (names []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	top := strings.TrimSuffix(filepath.Base(archive), ".tar.gz") + "/"
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, top)
		content, err := io.ReadAll(r)
		if !ok || err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		file := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sameContent fails if two files differ, and says where.
func sameContent(t *testing.T, a, b string) {
	t.Helper()
	contentA, contentB := []byte(contentOf(t, a)), []byte(contentOf(t, b))
	if bytes.Equal(contentA, contentB) {
		return
	}
	first := 0
	for first < min(len(contentA), len(contentB)) && contentA[first] == contentB[first] {
		first++
	}
	t.Errorf("%s (%d bytes) and %s (%d bytes) differ from byte %d on; if the first is older than the sources, run make build",
		a, len(contentA), b, len(contentB), first)
}
