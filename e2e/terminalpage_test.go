package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var updateTerminal = flag.Bool("update-terminal", false, "write docs/terminal.md")

const terminalPage = "../docs/terminal.md"

const terminalIntroduction = `# On a terminal

What some commands show on a terminal of 80 columns, as recorded by a test (` + "`TestTerminal_Page`" + `): with a hub of its own instead of
huggingface.co, and the small model that comes with lmcaddy. Times, ids, sizes and what ` + "`doctor`" + ` finds differ elsewhere. [Commands](commands.md)
lists all commands with their flags.
`

// The commands show on a terminal what docs/terminal.md has.
func TestTerminal_Page(t *testing.T) {
	hub := newHub(t, 200<<10) // it takes longer than the test, until the hub is mended
	h := harness.NewHome(t)
	config := hub.config()
	config.LM = append(config.LM, "memory_budget 2GiB", "model "+harness.Model+" {", "\tcontext_length 4096", "\tparallel 2", "}")
	s := harness.Start(h, config)
	p := &terminalPager{t: t, h: h, s: s, hub: hub}
	p.page.WriteString(terminalIntroduction)

	p.text("A name that the hub doesn't have is searched for. A download shows its progress, and Ctrl-C leaves it to the server.")
	get := h.Terminal("get", "tiny")
	get.Wait("Which one?")
	get.Type("1\r")
	get.Wait(" left")
	under := get.Raw()
	p.shows("get tiny", under[:strings.LastIndex(under, " left")+len(" left")])
	get.Type("\x03")
	get.Wait("the download continues")
	get.End()
	job := s.Get(downloadPath).Get("jobs.0.job_id").Str
	p.run("get", "--pause", job)
	p.run("get")
	hub.mend()
	p.run("get", "--resume", job)
	p.run("ls")
	p.run("show", harness.Model)

	p.text("A conversation loads its model. What the model thinks, before its answer, is dim.")
	chat := h.Terminal("chat", harness.Model, "--temperature", "0")
	chat.Wait("/help for help")
	for _, step := range [][2]string{
		{"/help", "earlier questions"}, {"Hello!", "How can I help"}, {"/set temprature 1", "temperature?"}, {"/set stats on", "stats on\r"}, {capital, "tokens/s"}, {"/bye", "--continue"},
	} {
		chat.Wait("> ")
		chat.Type(step[0] + "\r")
		chat.Wait(step[1])
	}
	chat.End()
	p.shows("chat "+harness.Model+" --temperature 0", chat.Raw())
	p.run("ps")
	p.run("conversations", "ls")
	p.run("usage", "--since", "today")
	p.run("log", "--lines", "4", "--model", harness.Model)
	p.run("doctor")
	p.compare()
}

// terminalPager gathers what commands show.
type terminalPager struct {
	t    *testing.T
	h    *harness.Home
	s    *harness.Server
	hub  *hub
	page strings.Builder
}

func (p *terminalPager) text(text string) { p.page.WriteString("\n" + text + "\n") }

// run runs a command to its end.
func (p *terminalPager) run(args ...string) {
	p.t.Helper()
	term := p.h.Terminal(args...)
	if status := term.End(); status != 0 {
		p.t.Errorf("lmcaddy %v ends with status %d", args, status)
	}
	p.shows(strings.Join(args, " "), term.Raw())
}

// shows adds what a command shows.
func (p *terminalPager) shows(command, raw string) {
	for _, v := range p.varying() { // before its lines are broken
		raw, command = v.pattern.ReplaceAllString(raw, v.by), v.pattern.ReplaceAllString(command, v.by)
	}
	screen := harness.NewScreen(80)
	screen.Write(raw)
	p.page.WriteString("\n```text\n$ lmcaddy " + command + "\n" + screen.String() + "```\n")
}

// replacement is what stands on the page instead of what a pattern matches.
type replacement struct {
	pattern *regexp.Regexp
	by      string
}

// varying has what is different in each run.
func (p *terminalPager) varying() []replacement {
	return []replacement{
		{regexp.MustCompile(regexp.QuoteMeta(p.h.Dir)), "/home/ada/.lmcaddy"},
		{regexp.MustCompile(regexp.QuoteMeta(p.h.Work)), "/home/ada"},
		{regexp.MustCompile(regexp.QuoteMeta(p.s.Base)), "http://127.0.0.1:1234"},
		{regexp.MustCompile(regexp.QuoteMeta(p.hub.URL)), "http://127.0.0.1:8080"},
		{regexp.MustCompile(`job_\w+`), "job_3f9a1c22ab"},
		{regexp.MustCompile(`\b[0-9a-f]{10}\b`), "3f9a1c22ab"},
		{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d{3}\b`), "09:41:07.382"},
		{regexp.MustCompile(`\bpid=\d+`), "pid=4711"},
		{regexp.MustCompile(`load_time=\S+`), "load_time=62.252ms"},
		{regexp.MustCompile(`engines/\w+/`), "engines/syzcsvwc/"},
		{regexp.MustCompile(`lmcaddy \S+ runs as process \d+`), "lmcaddy 0f4193c runs as process 4712"},
		{regexp.MustCompile(`\b20\d\d-\d\d-\d\d`), "2026-01-31"},
	}
}

// sameTerminal has what is different on other machines.
var sameTerminal = []replacement{
	{regexp.MustCompile("(?s)(\n\\$ lmcaddy log [^\n]*\n).*?```"), "${1}what the log has\n```"},
	{regexp.MustCompile(`(?m)^(ok|warning|problem) +\w+ .*\n( {10,}.*\n)*`), "what doctor found\n"},
	{regexp.MustCompile(`(what doctor found\n)+\n*.*\.\n`), "what doctor found\n"},
	{regexp.MustCompile(`\d+(\.\d+)? ?(kB|MB|GB|TB|B|%|ms|s)\b|\d+(\.\d+)? ?%|\b\d+ (seconds?|minutes?) ago|\bnow\b|in 1h|in 59m\d+s`), "N"},
	{regexp.MustCompile(`\d+(\.\d+)? tokens/s`), "N tokens/s"},
	{regexp.MustCompile(`\s+`), " "}, // a longer number wraps another line
}

func sameOnTerminals(page string) string {
	for _, v := range sameTerminal {
		page = v.pattern.ReplaceAllString(page, v.by)
	}
	return strings.ReplaceAll(page, "```", "\n```")
}

// compare compares the page with that in docs, or writes it.
func (p *terminalPager) compare() {
	p.t.Helper()
	page := p.page.String()
	if *updateTerminal {
		if err := os.WriteFile(filepath.FromSlash(terminalPage), []byte(page), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(terminalPage)
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(sameOnTerminals(string(want)), sameOnTerminals(page)); diff != "" {
		p.t.Errorf("docs/terminal.md isn't what is shown (-page +shown); -update-terminal writes it:\n%s", diff)
	}
}
