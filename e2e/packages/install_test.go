package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var installer = filepath.Join("..", "packaging", "install.sh")

// machine is where the installer runs: for a user with an empty home, and only the programs that the test gives it.
type machine struct {
	t         *testing.T
	home, bin string
	env       []string
}

// newMachine returns a machine with the programs that the installer always needs, and others.
func newMachine(t *testing.T, others ...string) *machine {
	t.Helper()
	m := &machine{t: t, home: filepath.Join(t.TempDir(), "my home"), bin: t.TempDir()}
	if err := os.Mkdir(m.home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"sh", "uname", "mktemp", "rm", "cp", "mv", "mkdir", "install", "grep", "head", "cut", "tar", "gzip", "basename", "dirname", "sha256sum"}, others...) {
		m.link(name, name)
	}
	return m
}

// link makes a program of this machine one of m, by a name.
func (m *machine) link(program, name string) {
	m.t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		err = os.Symlink(path, filepath.Join(m.bin, name))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// script makes a shell script one of m's programs, in place of another by this name.
func (m *machine) script(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.bin, name)
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// run runs the installer, and returns what it prints.
func (m *machine) run(script string, args ...string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), "sh", append([]string{script}, args...)...)
	cmd.Env = append([]string{"HOME=" + m.home, "PATH=" + m.bin, "TMPDIR=" + m.t.TempDir()}, m.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) must(script string, args ...string) string {
	m.t.Helper()
	out, err := m.run(script, args...)
	if err != nil {
		m.t.Fatalf("%q: %v: %s", args, err, out)
	}
	return out
}

// refuses checks that the installer fails, says why, and leaves nothing behind.
func (m *machine) refuses(want string) {
	m.t.Helper()
	if out, err := m.run(installer); err == nil || !strings.Contains(out, want) {
		m.t.Errorf("%v: it doesn't say %q, but\n%s", err, want, out)
	}
	if files := m.files(); len(files) > 0 {
		m.t.Errorf("%q are installed", files)
	}
}

// files returns the paths of all files in the home.
func (m *machine) files() (names []string) {
	m.t.Helper()
	err := filepath.WalkDir(m.home, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, m.home+"/"))
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return names
}

// small stands for the program in archives, since the program itself takes seconds to be compressed.
const small = `#!/bin/sh
case $1 in
version) echo "lmcaddy v1.2.3 (small)" ;;
manpage) mkdir -p "$3" && echo "$HOME" >"$3/lmcaddy.8" ;;
completion) echo "$2" ;;
esac
`

// publish returns a folder with a release's archives and their checksums.
func publish(t *testing.T, targets ...string) string {
	t.Helper()
	dir, sums := t.TempDir(), ""
	for _, target := range targets {
		var archive bytes.Buffer
		z := gzip.NewWriter(&archive)
		w := tar.NewWriter(z)
		folder := "lmcaddy_1.2.3_" + target
		text := strings.Replace(small, "small", target, 1)
		if err := w.WriteHeader(&tar.Header{Name: folder + "/lmcaddy", Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text)) // into memory
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, folder+".tar.gz"), archive.String())
		sums += fmt.Sprintf("%064d  %s.tar.gz.cdx.json\n%x  %s.tar.gz\n", 0, folder, sha256.Sum256(archive.Bytes()), folder)
	}
	write(t, filepath.Join(dir, "SHA256SUMS"), sums)
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The installer finds the archive for the machine, with the programs that the machine has.
func TestInstaller_Downloads(t *testing.T) {
	t.Parallel()
	dir := publish(t, "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		name, release, uname, want string
		has                        []string
	}{
		{"from a folder", dir, "Linux x86_64", "linux_amd64", nil},
		{"with curl", server.URL, "Linux aarch64", "linux_arm64", []string{"curl"}},
		{"with wget", server.URL + "/", "Linux x86_64", "linux_amd64", []string{"wget"}},
		{"a Mac", dir, "Darwin arm64", "darwin_arm64", nil},
		{"an old Mac", dir, "Darwin x86_64", "darwin_amd64", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, test.has...)
			m.env = []string{"LMCADDY_RELEASE=" + test.release}
			system, arch, _ := strings.Cut(test.uname, " ")
			m.script("uname", `if [ "$1" = -s ]; then echo `+system+`; else echo `+arch+`; fi`)
			out := m.must(installer)
			for _, want := range []string{"lmcaddy v1.2.3 (" + test.want + ") is installed in " + m.home + "/.local/bin.", `export PATH="` + m.home + `/.local/bin:$PATH"`, "runtime get llama.cpp"} {
				if !strings.Contains(out, want) {
					t.Errorf("it doesn't say %q, but\n%s", want, out)
				}
			}
			if page := contentOf(t, filepath.Join(m.home, ".local/share/man/man8/lmcaddy.8")); page != "~\n" {
				t.Errorf("the page is %q", page)
			}
			m.env = append(m.env, "PATH="+m.bin+":"+m.home+"/.local/bin")
			if out := m.must(installer); strings.Contains(out, "export") {
				t.Errorf("it wants PATH to be set again:\n%s", out)
			}
		})
	}
	t.Run("a Mac's shasum", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.script("sha256sum", "exit 1")
		if err := os.Rename(filepath.Join(m.bin, "sha256sum"), filepath.Join(m.bin, "shasum")); err != nil {
			t.Fatal(err)
		}
		sum, err := exec.LookPath("sha256sum")
		if err != nil {
			t.Fatal(err)
		}
		m.script("shasum", `[ "$1 $2" = "-a 256" ] && exec `+sum+` "$3"`)
		m.env = []string{"LMCADDY_RELEASE=" + dir}
		m.must(installer)
	})
}

// Nothing is installed if anything is wrong.
func TestInstaller_Refuses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, test := range []struct {
		name, want string
		change     func(m *machine, dir string)
	}{
		{"an archive that was changed", "isn't what SHA256SUMS says", func(m *machine, dir string) {
			other := publish(m.t, "linux_arm64")
			write(m.t, filepath.Join(dir, "lmcaddy_1.2.3_linux_amd64.tar.gz"), contentOf(m.t, filepath.Join(other, "lmcaddy_1.2.3_linux_arm64.tar.gz")))
		}},
		{"no sums", "has no SHA256SUMS", func(_ *machine, dir string) { _ = os.Remove(filepath.Join(dir, "SHA256SUMS")) }},
		{"no archive", "has no lmcaddy_1.2.3_linux_amd64.tar.gz", func(_ *machine, dir string) {
			_ = os.Remove(filepath.Join(dir, "lmcaddy_1.2.3_linux_amd64.tar.gz"))
		}},
		{"not in the list", "has no archive for linux_amd64", func(m *machine, _ string) {
			m.env[0] = "LMCADDY_RELEASE=" + publish(m.t, "linux_arm64")
		}},
		{"not served", "has no SHA256SUMS", func(m *machine, _ string) { m.link("curl", "curl"); m.env[0] = "LMCADDY_RELEASE=" + server.URL }},
		{"nothing to download with", "neither curl nor wget", func(m *machine, _ string) { m.env[0] = "LMCADDY_RELEASE=" + server.URL }},
		{"no release named", "set LMCADDY_RELEASE", func(m *machine, _ string) { m.env[0] = "LMCADDY_RELEASE=" }},
		{"another system", "no archive for FreeBSD", func(m *machine, _ string) { m.script("uname", "echo FreeBSD") }},
		{"another processor", "no archive for riscv64", func(m *machine, _ string) {
			m.script("uname", `if [ "$1" = -s ]; then echo Linux; else echo riscv64; fi`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, dir := newMachine(t), publish(t, "linux_amd64")
			m.script("uname", `if [ "$1" = -s ]; then echo Linux; else echo x86_64; fi`)
			m.env = []string{"LMCADDY_RELEASE=" + dir}
			test.change(m, dir)
			m.refuses(test.want)
		})
	}
}

// `make install` installs what packages do, and the installer deletes it, unless a service starts it.
func TestInstaller_Uninstalls(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.must(installer, "--program", harness.NewBareHome(t).Program())
	for _, want := range []string{
		"bin/lmcaddy", "share/bash-completion/completions/lmcaddy", "share/fish/vendor_completions.d/lmcaddy.fish",
		"share/zsh/site-functions/_lmcaddy", "share/man/man8/lmcaddy.8", "share/man/man8/lmcaddy-serve.8",
	} {
		if names := m.files(); !slices.Contains(names, ".local/"+want) {
			t.Errorf("there is no %s in %q", want, names)
		}
	}
	if page := contentOf(t, filepath.Join(m.home, ".local/share/man/man8/lmcaddy-serve.8")); !strings.Contains(page, `.TH "LMCADDY-SERVE" "8"`) {
		t.Errorf("the page's title is another: %.200s", page)
	}
	unit := filepath.Join(m.home, ".config/systemd/user/lmcaddy.service")
	if err := os.MkdirAll(filepath.Dir(unit), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, unit, "ExecStart="+m.home+"/.local/bin/lmcaddy run\n")
	if out, err := m.run(installer, "--uninstall"); err == nil || !strings.Contains(out, "lmcaddy service uninstall") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Remove(unit); err != nil {
		t.Fatal(err)
	}
	m.must(installer, "--uninstall")
	if left := m.files(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
