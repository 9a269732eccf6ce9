package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/node"
)

// description is the beginning of the program's help, before the commands.
const description = `lmcaddy turns a machine into a model server: it runs an engine for each loaded
model, and serves OpenAI-style, Anthropic-style, Ollama's and LM Studio's APIs.

The first steps:
  lmcaddy runtime get llama.cpp    downloads an engine
  lmcaddy serve                    serves on http://127.0.0.1:1234
  lmcaddy get qwen/qwen3-4b        downloads a model, from another terminal
  lmcaddy chat qwen/qwen3-4b       asks it

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`

// caddysOwn is the title of the group of commands that come with Caddy, and aren't about models.
const caddysOwn = "Caddy's own:"

// arrange puts the commands below another into the groups. Those of no group go to the one with the title rest, if it isn't empty.
func arrange(parent *cobra.Command, rest string) {
	all := slices.Clone(parent.Commands())
	var arranged []*cobra.Command
	for _, g := range kit.Groups {
		isEmpty := true
		for _, name := range g.Commands {
			for _, c := range all {
				if c.Name() == name {
					c.GroupID, isEmpty = g.Title, false
					arranged = append(arranged, c)
				}
			}
		}
		if !isEmpty {
			parent.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		}
	}
	if rest != "" {
		parent.AddGroup(&cobra.Group{ID: rest, Title: rest})
	}
	for _, c := range all {
		if !slices.Contains(arranged, c) {
			c.GroupID = rest
			arranged = append(arranged, c)
		}
	}
	parent.RemoveCommand(all...)
	parent.AddCommand(arranged...)
	parent.SetHelpTemplate(new(cobra.Command).HelpTemplate()) // without Caddy's footer
	parent.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", ".FlagUsagesWrapped 80",
		`Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		`"{{.CommandPath}} COMMAND --help" explains a command.`,
		"[command]", "COMMAND",
	).Replace(new(cobra.Command).UsageTemplate()))
}

// arrangeProgram makes the help of lmcaddy. root has all commands of Caddy and ours.
func arrangeProgram(root *cobra.Command) {
	cobra.EnableCommandSorting = false // the groups have an order of their own
	footer := root.HelpTemplate()
	arrange(root, caddysOwn)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(wholeHelp(root.HelpFunc()))
	root.SetHelpCommandGroupID(kit.Groups[len(kit.Groups)-1].Title)
	root.Short, root.Example = "model server", ""
	for _, c := range root.Commands() {
		if refused(c.Name()) != nil {
			c.Hidden = true
		}
		if own, ok := ownWords[c.Name()]; ok {
			own(c)
		} else if c.GroupID == caddysOwn && !c.Hidden {
			c.SetHelpTemplate(footer)
		}
	}
}

// wholeHelp returns a function that prints help, and ends the program with an error if it can't be written.
func wholeHelp(help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		if _, err := text.WriteTo(out); err != nil {
			exit(err)
		}
	}
}

// ownWords describe commands of Caddy's as those of a model server.
var ownWords = map[string]func(*cobra.Command){
	"run": func(c *cobra.Command) {
		c.Use, c.DisableFlagsInUseLine = "run [--config FILE] [--watch]", true
		c.Short = "Serves with the Caddyfile in this folder"
		c.Long = `Serves with the Caddyfile in this folder, or another configuration; without one,
like "lmcaddy serve". It runs until Ctrl-C, or "lmcaddy stop" in another
terminal.

"lmcaddy run MODEL" is "lmcaddy chat MODEL", as in ollama.`
		c.Example = "  lmcaddy run\n  lmcaddy run --config Caddyfile --watch"
		_ = c.Flags().MarkHidden("pingback") // it fails only if there is no such flag
	},
	"start": func(c *cobra.Command) {
		c.Use, c.DisableFlagsInUseLine = "start [--config FILE] [--watch]", true
		c.Short = "Like run, but in the background"
		c.Long = `Serves like "lmcaddy run", in the background, and returns when the server runs.
"lmcaddy stop" ends it.`
		c.Example = "  lmcaddy start\n  lmcaddy start --config Caddyfile"
	},
	"reload": func(c *cobra.Command) {
		c.Use, c.DisableFlagsInUseLine = "reload --config FILE", true
		c.Short = "Gives the running server a changed Caddyfile"
		c.Long = `Gives the running server a changed Caddyfile. Loaded models stay loaded, and
requests go on. If the new one is wrong, the old one stays in force.`
		c.Example = "  lmcaddy reload --config Caddyfile"
	},
	"stop": func(c *cobra.Command) {
		c.Use, c.DisableFlagsInUseLine = "stop", true
		c.Short = "Ends the running server"
		c.Long = `Ends the server that runs on $LMCADDY_HOME. Its requests may finish within the
grace period, then its engines end.

"lmcaddy stop MODEL" is "lmcaddy unload MODEL", as in ollama.`
		c.Example = "  lmcaddy stop"
	},
	"version": func(c *cobra.Command) {
		c.Short = "Prints the version"
		c.Long = "Prints the versions of lmcaddy, of what it is built on, and of Go."
		c.Example = "  lmcaddy version"
	},
	"manpage": describeManpage,
	"completion": func(c *cobra.Command) {
		c.Short = "Prints a script that completes commands in a shell"
		c.Example = "  lmcaddy completion bash"
		others := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if args[0] == "bash" { // the first version doesn't show what is completed
				return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true)
			}
			return others(cmd, args)
		}
	},
}

// listingPatience bounds how long a server that starts looks for models to tell their number. Disks may be slow.
const listingPatience = 30 * time.Second

// firstSteps returns what a server says after where it serves: which engine and how many models it has, and what to type next, each in
// a line.
func firstSteps(n *node.Node, listsAll bool) string {
	engines := []string{}
	for _, e := range n.Engines.Find() {
		if e.Executable != "" {
			engines = append(engines, strings.TrimSuffix(filepath.Base(e.Executable), ".exe")+" ("+e.Executable+")")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), listingPatience)
	defer cancel()
	models, err := n.Models(ctx)
	next := `Next, in another terminal: "lmcaddy chat" asks a model, "lmcaddy ls" lists them`
	listed := kit.Count(len(models), "model")
	switch {
	case err != nil:
		listed = "not known: " + err.Error()
	case len(models) == 0:
		listed, next = "none", `Next, in another terminal: "lmcaddy get qwen/qwen3-4b" gets a model, "lmcaddy search WORDS" finds others`
	case !listsAll:
		listed += "; GET /v1/models lists the loaded ones (list_models all: all)"
	}
	if len(engines) == 0 {
		engines, next = []string{"none"}, `Next, in another terminal: "lmcaddy runtime get llama.cpp" gets an engine`
	}
	return fmt.Sprintf("Engine: %s\nModels: %s\n%s\n", strings.Join(engines, ", "), listed, next)
}

// manSection is the section of the manual for what administers a system.
const manSection = "8"

// describeManpage makes Caddy's command write pages about lmcaddy. Caddy's own have one title, Caddy, on all of them.
func describeManpage(c *cobra.Command) {
	c.Use, c.DisableFlagsInUseLine = "manpage --directory FOLDER", true
	c.Short = "Writes the manual pages"
	c.Long = `Writes a manual page for lmcaddy and for each of its commands, lmcaddy-serve.8 and
so on, to a folder, which is made if there is none. Their date is that in
$SOURCE_DATE_EPOCH, if it is set.`
	c.Example = "  lmcaddy manpage --directory man"
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := cmd.Flags().GetString("directory")
		if err != nil {
			return err
		}
		if dir == "" {
			return errors.New(`the folder for the pages is missing: type "lmcaddy manpage --directory FOLDER"`)
		}
		date := time.Now()
		if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH is the number of seconds since 1970, not %q", text)
			}
			date = time.Unix(seconds, 0).UTC()
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // manual pages are public
			return err
		}
		return writeManpages(cmd.Root(), dir, date)
	}
}

func writeManpages(cmd *cobra.Command, dir string, date time.Time) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	source := "lmcaddy " + strings.TrimPrefix(cmp.Or(caddy.CustomVersion, "development"), "v")
	cmd.DisableAutoGenTag = true // says which library has written it
	escapeMarkdown(cmd)
	var page bytes.Buffer
	header := doc.GenManHeader{Title: strings.ToUpper(name), Section: manSection, Date: &date, Source: source, Manual: "lmcaddy"}
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+"."+manSection), page.Bytes(), 0o644); err != nil { //nolint:gosec // public
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writeManpages(sub, dir, date); err != nil {
			return err
		}
	}
	return nil
}

// escapeMarkdown keeps what is in angle brackets, such as <publisher>, from being dropped: cobra makes the page of Markdown, where
// that is a tag of HTML. Indented lines are code, which stays as it is.
func escapeMarkdown(cmd *cobra.Command) {
	escape := func(text string) string {
		var all strings.Builder
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
				line = strings.ReplaceAll(line, "<", `\<`)
			}
			all.WriteString(line)
		}
		return all.String()
	}
	cmd.Use, cmd.Short, cmd.Long = escape(cmd.Use), escape(cmd.Short), escape(cmd.Long)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escape(f.Usage) })
}
