package command

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// program returns a root command with our commands, arranged as in our program.
func program(t *testing.T) *cobra.Command {
	t.Helper()
	t.Cleanup(func() { cobra.EnableCommandSorting = true }) // which arrangeProgram sets
	root := &cobra.Command{Use: "lmcaddy", Long: description}
	for _, c := range append(commands(), everydayCommands(everydays)...) {
		cmd := &cobra.Command{Use: c.Name + " " + c.Usage, Short: c.Short, Long: c.Long}
		c.CobraFunc(cmd)
		root.AddCommand(cmd)
	}
	for _, name := range []string{"run", "stop", "storage", "upgrade"} { // some of Caddy's
		root.AddCommand(&cobra.Command{Use: name, Short: "Does something of caddy's", Run: func(*cobra.Command, []string) {}})
	}
	arrangeProgram(root)
	return root
}

// all calls do with every command below another that isn't hidden.
func all(cmd *cobra.Command, do func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			do(sub)
			all(sub, do)
		}
	}
}

func helpOf(cmd *cobra.Command) string {
	var out bytes.Buffer
	cmd.SetOut(&out)
	_ = cmd.Help() // it returns nil
	return out.String()
}

func TestHelp_OfTheProgram(t *testing.T) {
	root := program(t) // sets a variable of cobra's, so this test isn't parallel
	text := helpOf(root)
	last := 0
	for _, part := range []string{"The first steps:", "\nServe:\n  serve ", "  run ", "\nModels:\n", "  get ", "  ls ", "\nTalk:\n  chat ", "\nLook:\n", "\nTokens and settings:\n", "\nCaddy's own:\n  storage "} {
		i := strings.Index(text[last:], part)
		if i < 0 {
			t.Fatalf("%q isn't where it belongs:\n%s", part, text)
		}
		last += i
	}
	for _, hidden := range []string{"upgrade", "daemon", "signin"} {
		if strings.Contains(text, "\n  "+hidden+" ") {
			t.Errorf("%s is listed", hidden)
		}
	}
	for line := range strings.Lines(text) {
		if terminal.Width(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
}

// TestHelp_OfEachCommand: our commands' help has examples, says what the command works on, and doesn't speak of another program.
func TestHelp_OfEachCommand(t *testing.T) {
	caddy := regexp.MustCompile(`\bcaddy\b`)
	root := program(t)
	all(root, func(cmd *cobra.Command) {
		if cmd.GroupID == caddysOwn {
			return
		}
		text := helpOf(cmd)
		if cmd.Example == "" || cmd.Long == "" {
			t.Errorf("%s has no example or no long text", cmd.CommandPath())
		}
		if caddy.MatchString(text) {
			t.Errorf("%s speaks of caddy:\n%s", cmd.CommandPath(), text)
		}
		for line := range strings.Lines(text) {
			if terminal.Width(strings.TrimRight(line, "\n")) > 80 && !strings.HasPrefix(line, "  lmcaddy ") {
				t.Errorf("%s: longer than 80 columns: %s", cmd.CommandPath(), line)
			}
		}
		for line := range strings.Lines(cmd.Example) {
			_, ours, _ := strings.Cut(line, " lmcaddy ") // after what pipes into it, or sets a variable
			words := strings.Fields("lmcaddy " + quotedText.ReplaceAllString(strings.ReplaceAll(ours, "'", `"`), "text"))
			if ours == "" || !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: an example isn't a command: %q", cmd.CommandPath(), line)
			} else if !slices.Contains(kit.CaddysNames, words[1]) {
				if problem := wrongCommand(words[1:]); problem != "" {
					t.Errorf("%s: %s: %s", cmd.CommandPath(), line, problem)
				}
			}
		}
	})
}

// TestGroups: every command of ours is in one group.
func TestGroups(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		n := 0
		for _, g := range kit.Groups {
			for _, name := range g.Commands {
				if name == c.Name {
					n++
				}
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d groups", c.Name, n)
		}
	}
}

func TestHelp_BelowLM(t *testing.T) {
	t.Parallel()
	lm := &cobra.Command{Use: "lm COMMAND"}
	defineLM(lm)
	text := helpOf(lm)
	for _, part := range []string{"\nServe:\n", "\nModels:\n", "  ls "} {
		if !strings.Contains(text, part) {
			t.Errorf("%q isn't in:\n%s", part, text)
		}
	}
}

func TestErrors_OfTheCommandLine(t *testing.T) {
	root := program(t)
	for line, want := range map[string]string{
		"ls --jsn":                     `lmcaddy ls has no flag --jsn: did you mean --json?`,
		"ls --nonsense":                `lmcaddy ls has no flag --nonsense: "lmcaddy ls --help" lists them`,
		"load":                         `something is missing: type "lmcaddy load MODEL" ("lmcaddy load --help" explains it)`,
		"load a b":                     `lmcaddy load was given too many arguments: type "lmcaddy load MODEL"`,
		"ps a":                         `lmcaddy ps takes no arguments, and was given "a" ("lmcaddy ps --help" explains it)`,
		"load m -c many":               `--context-length many: give a whole number`,
		"token lst":                    `lmcaddy token has no command "lst": did you mean ls?`,
		"token nonsense":               `lmcaddy token has no command "nonsense"; there are: create, edit, list, ls, revoke, rm`,
		"runtime gte llama.cpp":        `lmcaddy runtime has no command "gte": did you mean get?`,
		"token create --tokens-per-dy": `lmcaddy token create has no flag --tokens-per-dy: did you mean --tokens-per-day?`,
	} {
		root.SetArgs(strings.Fields(line))
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetOut(new(bytes.Buffer))
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("lmcaddy %s: %v, want %s", line, err, want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	const text = "one two three four five six seven\neight\n\nsix:\n  seven eight nine ten\neleven"
	if got := wrap(text, 24); got != "one two three four five\nsix seven eight\n\nsix:\n  seven eight nine ten\neleven" {
		t.Errorf("%q", got)
	}
}
