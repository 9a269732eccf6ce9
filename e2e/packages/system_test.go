//go:build release

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// system is the folder of a Debian system without anything that Debian's smallest installation lacks.
type system struct {
	t    *testing.T
	root string
}

// script is run in namespaces of its own, in which /proc and /dev are mounted, so that nothing is left of it.
const script = `set -e
mount --types proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$@"`

// newSystem makes a system. debootstrap downloads it once, and later tests copy it.
func newSystem(t *testing.T, suite string, packages ...string) *system {
	t.Helper()
	kept, err := filepath.Abs(filepath.Join("..", ".cache", "systems", strings.Join(append([]string{suite}, packages...), "+")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		making := kept + ".making"
		must(t, "rm", "-rf", making)
		must(t, "mkdir", "-p", making)
		must(t, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), suite, making)
		must(t, "mv", making, kept)
	}
	s := &system{t, filepath.Join(t.TempDir(), "root")}
	must(t, "cp", "--archive", kept, s.root)
	return s
}

// command returns a command in the system.
func (s *system) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", s.root}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

// run runs a command in the system, and returns what it printed.
func (s *system) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// put copies a file into the system.
func (s *system) put(file, to string) {
	s.t.Helper()
	must(s.t, "install", "-D", file, filepath.Join(s.root, to))
}

// modes returns the mode, owner and group of each path, as stat prints them.
func (s *system) modes(paths ...string) string {
	s.t.Helper()
	return s.run(append([]string{"stat", "--format", "%A %U:%G %n"}, paths...)...)
}

// callsFile is where the systemctl of pretendToRun notes its calls.
const callsFile = "/systemctl.calls"

// pretendToRun makes a system look as if systemd ran it. Its systemctl only notes how it is called, and which version of the program
// a restart would start.
func (s *system) pretendToRun() {
	s.t.Helper()
	must(s.t, "mkdir", "-p", filepath.Join(s.root, "/run/systemd/system"))
	file := filepath.Join(s.root, "/usr/bin/systemctl")
	must(s.t, "rm", "-f", file)
	text := "#!/bin/sh\necho \"$*\" >>" + callsFile + "\ncase \"$*\" in *restart*) lmcaddy version >>" + callsFile + ";; esac\n"
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil { //nolint:gosec // a program
		s.t.Fatal(err)
	}
}

// calls returns the calls of systemctl that change or ask something about a service, since the last time, and what they started.
func (s *system) calls() (all []string) {
	s.t.Helper()
	file := filepath.Join(s.root, callsFile)
	for line := range strings.Lines(contentOf(s.t, file)) {
		all = append(all, strings.TrimSpace(line))
	}
	must(s.t, "rm", file)
	return all
}

func (s *system) has(path string) bool {
	_, err := os.Lstat(filepath.Join(s.root, path))
	return err == nil
}

// must runs a program of this machine.
func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// aptInstall installs Debian's packages on this machine, whose programs the test needs.
func aptInstall(t *testing.T, program string, packages ...string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	must(t, "apt-get", "update", "-qq")
	must(t, "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...)...)
}
