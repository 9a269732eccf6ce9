package kit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

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
