package e2e

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	updateFirstRun = flag.Bool("update-first-run", false, "write docs/first-run.md")
	wholeFirstRun  = flag.Bool("whole-first-run", false, "build the program and download the engine in the first run, as the README does")
)

const firstRunPage = "../docs/first-run.md"

// The first commands of the README work in a new clone, for a user without a home folder of lmcaddy, and print what docs/first-run.md
// shows. Unless -whole-first-run is given, the clone gets the built program and the home the engine of the tests, which would take minutes.
func TestFirstRun_TheReadme(t *testing.T) {
	n := newcomer(t)
	var page strings.Builder
	page.WriteString(firstRunIntroduction)
	for _, b := range blocksOf(t, filepath.Join(n.clone, "README.md")) {
		if strings.Contains(b.text, "make install") || strings.HasPrefix(b.text, "lmcaddy ") {
			break // the first screen ends
		}
		if b.kind != "sh" {
			continue
		}
		for _, command := range commandsOf(b.text) {
			page.WriteString("\n```text\n$ " + command + "\n" + n.run(command) + "```\n")
		}
	}
	n.run("bin/lmcaddy stop")
	if status := n.server.WaitEnd(harness.Patience); status != 0 {
		t.Errorf("make run ends with status %d", status)
	}
	if *updateFirstRun {
		if err := os.WriteFile(firstRunPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(firstRunPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(masked(string(want)), masked(page.String())); diff != "" {
		t.Errorf("docs/first-run.md isn't what a new user sees (-page +seen); -update-first-run writes it:\n%s", diff)
	}
}

const firstRunIntroduction = `# A first run

What the first commands of the [README](../README.md) print, as recorded by a test (` + "`TestFirstRun_TheReadme`" + `) in a new clone and an empty
home. Building the program and downloading the engine, which ` + "`make run`" + ` does first, are left out, and so is the server's log. Times, sizes
and versions differ on other machines, and so may what ` + "`doctor`" + ` finds.
`

// newUser is a user who has only a clone of the repository.
type newUser struct {
	t      *testing.T
	h      *harness.Home
	home   string // $HOME
	clone  string
	port   int
	server *harness.Server
}

func newcomer(t *testing.T) *newUser {
	t.Helper()
	h := harness.NewBareHome(t)
	n := &newUser{t: t, h: h, home: filepath.Join(h.Work, "me"), port: harness.FreePort(t)}
	n.clone = filepath.Join(n.home, "lmcaddy")
	h.Dir, h.IsDefault, h.Path = filepath.Join(n.home, ".lmcaddy"), true, os.Getenv("PATH")
	h.Env = []string{"HOME=" + n.home}
	if err := os.Mkdir(n.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if *wholeFirstRun {
		n.must("git", "clone", "--quiet", "..", n.clone)
		h.Env = append(h.Env, "GOMODCACHE="+n.must("go", "env", "GOMODCACHE"), "GOCACHE="+n.must("go", "env", "GOCACHE"))
		return n
	}
	// What a clone would have if this state were committed.
	if err := os.Mkdir(n.clone, 0o700); err != nil {
		t.Fatal(err)
	}
	n.must("sh", "-c", `cd .. && git ls-files -z -- . ':!e2e' | xargs -0 cp --parents -t "$1"`, "sh", n.clone)
	for _, dir := range []string{filepath.Join(n.clone, "bin"), h.Dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.Program(), filepath.Join(n.clone, "bin", "lmcaddy")); err != nil {
		t.Fatal(err)
	}
	h.LinkRuntimes()
	return n
}

// must runs a command of the test itself, and returns what it prints.
func (n *newUser) must(name string, args ...string) string {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// run runs a command of the README, and returns what it prints on a page.
func (n *newUser) run(command string) string {
	n.t.Helper()
	if command == "make run" {
		return n.shown(n.make())
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer(":1234", ":"+strconv.Itoa(n.port), "curl ", "curl --silent --show-error --fail-with-body ").Replace(command))
	cmd.Dir, cmd.WaitDelay = n.clone, time.Second
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + n.h.Path}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		n.t.Errorf("%s: %v: %s", command, err, out.String())
	}
	if strings.Contains(command, capital) && !strings.Contains(out.String(), paris) {
		n.t.Errorf("%s: %s", command, out.String())
	}
	return n.shown(strings.TrimSuffix(out.String(), "\n") + "\n")
}

// make runs `make run`, and returns what it prints when it serves, without the server's log.
func (n *newUser) make() string {
	n.t.Helper()
	args := []string{"-C", n.clone, "--no-print-directory", "run", "PORT=" + strconv.Itoa(n.port)}
	if !*wholeFirstRun {
		args = append(args, "-o", "bin/lmcaddy")
	}
	h := n.h.In(n.t)
	h.Binary = n.must("which", "make")
	n.server = h.Begin(n.port, args...)
	within := harness.Patience
	if *wholeFirstRun {
		within = 30 * time.Minute
	}
	harness.Eventually(n.t, within, "make run serves, and has loaded the model", func() bool {
		if n.server.HasEnded() {
			n.t.Fatalf("make run has ended:\n%s", n.server.Log())
		}
		return strings.Contains(n.server.Log(), "Serving on ") && strings.Contains(n.server.Log(), `"msg":"model loaded"`)
	})
	var said strings.Builder
	for line := range strings.Lines(n.server.Log()) {
		if strings.HasPrefix(line, "Serving on ") || strings.HasPrefix(line, "Open ") {
			said.WriteString(line)
		}
	}
	return said.String()
}

// shown replaces the folders and the port of this test by those that a user has.
func (n *newUser) shown(text string) string {
	return strings.NewReplacer(n.home, "/home/ada", "127.0.0.1:"+strconv.Itoa(n.port), "127.0.0.1:1234").Replace(text)
}

// differs has what differs from run to run, and from machine to machine, in what a new user sees.
var differs = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?m)(^(ok|warning) +\w+ .*\n( {10,}.*\n)*)+\n*.*\.$`), "what doctor found"},
	{regexp.MustCompile(`\d+(\.\d+)? [kMGT]B|\d+ seconds? ago|\bnow\b`), "N"},
	{regexp.MustCompile(`"created":\d+`), `"created":N`},
	{regexp.MustCompile(`"(chatcmpl|fp)[-_]?[^"]*"|"b\d+[^"]*"`), `"ID"`},
	{regexp.MustCompile(`"cached_tokens":\d+`), `"cached_tokens":N`},
	{regexp.MustCompile(` +`), " "},
}

func masked(text string) string {
	for _, d := range differs {
		text = d.pattern.ReplaceAllString(text, d.by)
	}
	return text
}
