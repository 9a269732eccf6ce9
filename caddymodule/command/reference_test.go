package command

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// referenceFile is made by this test with -update, from the texts of the commands.
const referenceFile = "../../docs/commands.md"

const referenceIntro = `# Commands

This page is made from the texts of the commands (` + "`make reference`" + `), which ` + "`lmcaddy COMMAND --help`" + ` prints, too.

Most commands talk to the server that runs on ` + "`$LMCADDY_HOME`" + `, over a socket in that folder, which only the user that runs the server can
use. ` + "`--host URL`" + ` talks to another server over HTTP, with the token in ` + "`--token`" + ` or ` + "`$LM_API_TOKEN`" + ` if it needs one. Results go to standard
output, notes and progress to standard error. The exit status is 0 on success, otherwise 1, with the reason on standard error.
`

func makeReference() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	for _, c := range commands() {
		cmd := &cobra.Command{Use: c.Name + " " + c.Usage, Short: c.Short, Long: c.Long}
		c.CobraFunc(cmd)
		describeCommand(&b, cmd, "lmcaddy", 2)
	}
	b.WriteString("\n## Caddy's commands\n\nThese are the same in every build of Caddy; `lmcaddy help COMMAND` describes them.\n\n| command | what it does |\n|---|---|\n")
	all := caddycmd.Commands()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !isOurs(name) && !replaced[name] {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.TrimSuffix(strings.ReplaceAll(all[name].Short, "|", `\|`), "."))
		}
	}
	return b.String()
}

// replaced are commands of Caddy's that lmcaddy refuses, or that concern nobody here.
var replaced = map[string]bool{"add-package": true, "remove-package": true, "upgrade": true, "version": true, "lm": true}

func isOurs(name string) bool {
	return slices.ContainsFunc(commands(), func(c caddycmd.Command) bool { return c.Name == name })
}

// describeCommand writes the section of a command, and those of the commands below it.
func describeCommand(b *strings.Builder, cmd *cobra.Command, parent string, level int) {
	path := parent + " " + cmd.Name()
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n", strings.Repeat("#", level), strings.TrimPrefix(path, "lmcaddy "), strings.TrimSuffix(cmd.Short, "."))
	if long := strings.TrimSpace(cmd.Long); long != "" && long != cmd.Short {
		fmt.Fprintf(b, "\n%s\n", asMarkdown(long))
	}
	if !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n    %s\n", strings.TrimSpace(parent+" "+cmd.Use))
	}
	if rows := flagRows(cmd); len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | meaning |\n|---|---|\n%s", strings.Join(rows, ""))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh no-run\n%s```\n", unindented(cmd.Example))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			describeCommand(b, sub, path, level+1)
		}
	}
}

// asMarkdown keeps what is indented in a text as it is, and what could be taken for HTML.
func asMarkdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "  "); ok {
			lines[i] = "    " + rest
		} else {
			lines[i] = strings.ReplaceAll(line, "<", `\<`)
		}
	}
	return strings.Join(lines, "\n")
}

func unindented(example string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(example, "\n")) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// flagRows are the rows of the table of a command's own flags.
func flagRows(cmd *cobra.Command) (rows []string) {
	home, _ := os.UserHomeDir()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if !slices.Contains([]string{"", "false", "0", "[]", "0s"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		usage = strings.ReplaceAll(usage, home, "~")
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", name, strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`).Replace(usage)))
	})
	return rows
}

// The page about the commands is as their texts say.
func TestReference_IsUpToDate(t *testing.T) {
	got := makeReference()
	testkit.Golden(t, referenceFile, []byte(got))
}
