package kit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// SecondsInWords describes a duration without the units that are zero.
func SecondsInWords(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}

// Size describes a number of bytes, of files and of memory, in decimal units.
func Size(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// Count describes a number of things, of which one is a noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// When describes a moment in the near future, to the second.
func When(at, now time.Time) string {
	if left := at.Sub(now).Round(time.Second); left > 0 {
		return "in " + SecondsInWords(left.Seconds())
	}
	return "now"
}

// Ago describes a moment in the past, such as "3 minutes ago".
func Ago(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case now.Sub(at) < time.Second:
		return "now"
	}
	return humanize.RelTime(at, now, "ago", "from now")
}

// Moment describes a moment in the past or the future, such as "3 minutes ago" or "in 4 weeks".
func Moment(t *resource.Time) string {
	if t == nil {
		return "never"
	}
	now := time.Now()
	if left, ok := strings.CutSuffix(humanize.RelTime(t.Time, now, "ago", "from now"), " from now"); ok {
		return "in " + left
	}
	return Ago(t.Time, now)
}

// InDays returns an age in weeks, such as 2w, in days. Any other is returned as it is.
func InDays(age string) string {
	weeks, ok := strings.CutSuffix(age, "w")
	if n, err := strconv.Atoi(weeks); ok && err == nil {
		return strconv.Itoa(7*n) + "d"
	}
	return age
}

// OneLine returns a text in one line, without characters that change what a terminal shows: it may come from anywhere.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(terminal.Line(text), "\uFFFD", " ")), " ")
}

// longestNote bounds a note where there is no terminal, in characters.
const longestNote = 400

// Cut shortens a line to a number of columns; 0: longestNote.
func Cut(line string, columns int) string {
	if columns <= 0 {
		columns = longestNote
	}
	return terminal.Cut(line, columns)
}

// Wrapped writes a sentence in lines that fit the terminal, if out is one.
func Wrapped(out io.Writer, format string, values ...any) error {
	_, err := fmt.Fprintln(out, terminal.Wrap(terminal.Line(fmt.Sprintf(format, values...)), terminal.Columns(out), 0))
	return err
}

// OrDash is a cell's text, or a dash where there is none.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// CheckValue returns an error about a flag's value that isn't one of those that there are.
func CheckValue(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	said := fmt.Sprintf("--%s %s", flag, value)
	if meant := nearest.DidYouMean(value, known); meant != "" {
		return fmt.Errorf("%s%s The values are %s", said, meant, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: give one of %s", said, strings.Join(known, ", "))
}

// IsBelowLM is true in a Caddy build other than lmcaddy, where our commands are below lm.
var IsBelowLM bool

// CaddysNames are those of them that aren't below lm.
var CaddysNames = []string{"run", "start", "stop", "reload", "version", "completion", "help"}

// InWords returns a text with the commands as they are typed in this program: in another Caddy build, "lmcaddy get" becomes
// "caddy lm get", and "lmcaddy run" becomes "caddy run".
func InWords(text string) string {
	if !IsBelowLM {
		return text
	}
	return wordsBelowLM(text, cmp.Or(caddy.CustomBinaryName, "caddy"))
}

func wordsBelowLM(text, program string) string {
	var names []string
	for _, g := range Groups {
		names = append(names, g.Commands...)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // "lmcaddy runtime" isn't "lmcaddy run"
	var pairs []string
	for _, name := range names {
		typed := program + " lm " + name
		if slices.Contains(CaddysNames, name) {
			typed = program + " " + name
		}
		pairs = append(pairs, "lmcaddy "+name, typed)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

type group struct {
	Title    string
	Commands []string
}

// Groups are the groups of the help, and their commands, in the order in which people need them.
var Groups = []group{
	{"Serve:", []string{"serve", "run", "start", "reload", "stop", "service", "runtime"}},
	{"Models:", []string{"search", "get", "import", "ls", "show", "load", "unload", "pin", "unpin", "rm"}},
	{"Talk:", []string{"chat", "conversations", "warm"}},
	{"Look:", []string{"status", "ps", "log", "usage", "doctor"}},
	{"Tokens and settings:", []string{"token", "config", "mcp", "backup", "restore", "completion", "version", helpName}},
}

// helpName is the name of the command that cobra adds when the program begins.
const helpName = "help"
