package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	updateFirstHour = flag.Bool("update-first-hour", false, "write docs/first-hour.md")
	wholeFirstHour  = flag.Bool("whole-first-hour", false, "build the program and download the engine in the first hour, as the README does")
)

const firstHourPage = "../docs/first-hour.md"

// newUser is a user who has only a clone of the repository. What the terminal shows is written to a page.
type newUser struct {
	t     *testing.T
	h     *harness.Home
	home  string // $HOME
	clone string
	port  int // of the servers without TLS
	tls   int // of the server with it
	hub   *hub
	page  strings.Builder
}

func newcomer(t *testing.T) *newUser {
	t.Helper()
	h := harness.NewBareHome(t)
	n := &newUser{t: t, h: h, home: filepath.Join(h.Work, "ada"), port: harness.FreePort(t), tls: harness.FreePort(t), hub: newHub(t, 200<<10)}
	n.clone = filepath.Join(n.home, "lmcaddy")
	bin := filepath.Join(n.clone, "bin")
	h.Dir, h.IsDefault, h.Path = filepath.Join(n.home, ".lmcaddy"), true, bin+string(os.PathListSeparator)+os.Getenv("PATH")
	h.Env, h.Work, h.Binary = []string{"HOME=" + n.home}, n.clone, "/bin/bash"
	for _, dir := range []string{n.home, n.clone} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if *wholeFirstHour {
		n.must("git", "clone", "--quiet", "..", n.clone)
		h.Env = append(h.Env, "GOMODCACHE="+n.must("go", "env", "GOMODCACHE"), "GOCACHE="+n.must("go", "env", "GOCACHE"))
		return n
	}
	// What a clone would have if this state were committed.
	n.must("sh", "-c", `cd .. && git ls-files -z -- . ':!e2e' | xargs -0 cp --parents -t "$1"`, "sh", n.clone)
	for _, dir := range []string{bin, h.Dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	built := *h
	built.Binary = ""
	if err := os.Symlink(built.Program(), filepath.Join(bin, "lmcaddy")); err != nil {
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

// put writes a file below the user's folder.
func (n *newUser) put(path string, content []byte) {
	n.t.Helper()
	path = filepath.Join(n.home, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// addresses are those of the page, and those of this test.
func (n *newUser) addresses() []string {
	here := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	return []string{"127.0.0.1:1234", here(n.port), "127.0.0.1:8443", here(n.tls), "http://127.0.0.1:8080", n.hub.URL}
}

// here returns a command of the page as this test runs it.
func (n *newUser) here(command string) string {
	making := fmt.Sprintf("exec make --no-print-directory run PORT=%d", n.port)
	if !*wholeFirstHour {
		making += " -o bin/lmcaddy"
	}
	replaced := append(n.addresses(), "make run", making, "curl ", "curl --silent --show-error --fail-with-body ")
	return strings.NewReplacer(replaced...).Replace(command)
}

// begins runs a command in a terminal.
func (n *newUser) begins(command string, env ...string) *harness.Terminal {
	n.t.Helper()
	h := *n.h
	h.Env = slices.Concat(h.Env, env)
	return h.Terminal("-c", n.here(command))
}

// types runs a command to its end.
func (n *newUser) types(command string, env ...string) {
	n.t.Helper()
	n.ends(n.begins(command, env...), command, 0)
}

// fails runs a command that can't succeed.
func (n *newUser) fails(command string, env ...string) {
	n.t.Helper()
	n.ends(n.begins(command, env...), command, 1)
}

// ends waits for the end of a command.
func (n *newUser) ends(term *harness.Terminal, command string, want int) {
	n.t.Helper()
	status := term.End()
	if shown := term.Shown(); status != want || strings.Contains(command, capital) && !strings.Contains(shown, paris) {
		n.t.Errorf("%s ends with status %d: %s", command, status, shown)
	}
	n.shows(command, term.Raw())
}

// serves runs a command that starts a server, until this has said what to type next.
func (n *newUser) serves(command, and string) *harness.Terminal {
	n.t.Helper()
	within := harness.Patience
	if *wholeFirstHour {
		within = 30 * time.Minute
	}
	term := n.begins(command)
	harness.Eventually(n.t, within, command+" says what to type next", func() bool {
		shown := term.Shown()
		return strings.Contains(shown, "Next, in another terminal") && strings.HasSuffix(shown, "\n") && strings.Contains(shown, and)
	})
	n.shows(command, modelsLog.ReplaceAllString(term.Raw(), ""))
	return term
}

// modelsLog matches what a server logs of its models, on a terminal.
var modelsLog = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+\t\S*INFO\S*\tlm\t.*\n`)

// says writes a text to the page.
func (n *newUser) says(text string) { n.page.WriteString("\n" + text + "\n") }

// shows adds what a terminal of 80 columns shows of a command.
func (n *newUser) shows(command, raw string) {
	addresses := n.addresses()
	slices.Reverse(addresses)
	raw = strings.NewReplacer(append(addresses, n.home, "/home/ada")...).Replace(raw)
	for _, v := range inEachRun { // before its lines are broken
		raw, command = v.pattern.ReplaceAllString(raw, v.by), v.pattern.ReplaceAllString(command, v.by)
	}
	screen := harness.NewScreen(80)
	screen.Write(raw)
	n.page.WriteString("\n```text\n$ " + command + "\n" + strings.TrimPrefix(screen.String(), "\n") + "```\n")
}

// replacement is what stands on the page instead of what a pattern matches.
type replacement struct {
	pattern *regexp.Regexp
	by      string
}

// inEachRun has what is different in each run.
var inEachRun = []replacement{
	{regexp.MustCompile(`job_\w+`), "job_3f9a1c22ab"},
	{regexp.MustCompile(`\b[0-9a-f]{10}\b`), "3f9a1c22ab"},
	{regexp.MustCompile(`"created":\w+`), `"created":1769850067`},
	{regexp.MustCompile(`sk-lm-[\w:]+`), "sk-lm-uXc3Zb1q:kY7pQvR2mNwT8sLd4HfJ"},
	{regexp.MustCompile(`"chatcmpl-\w+"`), `"chatcmpl-h25bbkazv3e2o3mnzduppbrqpz"`},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d{3}\b`), "09:41:07.382"},
	{regexp.MustCompile(`\bpid=\d+`), "pid=4711"},
	{regexp.MustCompile(`load_time=\S+`), "load_time=62.252ms"},
	{regexp.MustCompile(`engines/\w+/`), "engines/syzcsvwc/"},
	{regexp.MustCompile(`lmcaddy \S+ runs as process \d+`), "lmcaddy 0f4193c runs as process 4712"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d(T[\d:]+Z)?`), "2026-01-31"},
}

// elsewhere has what is different on other machines.
var elsewhere = []replacement{
	{regexp.MustCompile("(?s)(\n\\$ lmcaddy log [^\n]*\n).*?```"), "${1}what the log has\n```"},
	{regexp.MustCompile(`(?m)^(ok|warning|problem) +\w+ .*\n( {10,}.*\n|[a-z-]+\.\n)*`), "what doctor found\n"},
	{regexp.MustCompile(`(what doctor found\n)+\n*.*\.\n`), "what doctor found\n"},
	{regexp.MustCompile(`\d+(\.\d+)? ?(kB|MB|GB|TB|B|%|ms|s)\b|\d+(\.\d+)? ?%|\b\d+ (seconds?|minutes?) ago|\bnow\b|in 1h|in 59m\d+s`), "N"},
	{regexp.MustCompile(`\d+(\.\d+)? tokens/s`), "N tokens/s"},
	{regexp.MustCompile(`"cached_tokens":\d+`), `"cached_tokens":N`},
	{regexp.MustCompile(`\s+`), ""}, // a longer number wraps another line, also within a word
	{regexp.MustCompile(`b\d{4,}(-[a-z0-9]+)?`), "bN"},
}

// compare compares the page with that in docs, or writes it.
func (n *newUser) compare() {
	n.t.Helper()
	if *updateFirstHour {
		if err := os.WriteFile(filepath.FromSlash(firstHourPage), []byte(n.page.String()), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(firstHourPage)
	if err != nil {
		n.t.Fatal(err)
	}
	same := func(page string) (blocks []string) {
		for block := range strings.SplitSeq(page, "\n$ ") {
			for _, v := range elsewhere {
				block = v.pattern.ReplaceAllString(block, v.by)
			}
			blocks = append(blocks, block)
		}
		return blocks
	}
	if diff := cmp.Diff(same(string(want)), same(n.page.String())); diff != "" {
		n.t.Errorf("docs/first-hour.md isn't what is shown (-page +shown); -update-first-hour writes it:\n%s", diff)
	}
}
