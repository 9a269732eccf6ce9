// Package command is the command line: commands that talk to a running server, commands that work on the home folder, and
// what makes a program lmcaddy rather than Caddy with our modules.
//
// Importing the package changes nothing. [Prepare] makes the process lmcaddy, with the commands at the top level.
// [RegisterLM] gives any other Caddy build one command, lm, with all of them below it.
package command

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ownCommands returns our commands as they define themselves.
func ownCommands() []caddycmd.Command {
	return []caddycmd.Command{
		{Name: "backup", Usage: "FILE [--models]", Short: "Saves the home folder's state to a file", CobraFunc: defineBackup},
		{Name: "chat", Usage: "[MODEL] [--prompt TEXT]", Short: "Asks a model of the running server", CobraFunc: defineChat},
		{Name: "config", Usage: "[--path] [--json]", Short: "Shows the configuration in force", CobraFunc: defineConfig},
		{
			Name: "conversations", Usage: "ls | show ID | rm ID | export ID", Short: "Lists, shows, deletes and exports stored conversations",
			CobraFunc: defineConversations,
		},
		{Name: "doctor", Usage: "[--json]", Short: "Finds out what is wrong, and says what to do", CobraFunc: defineDoctor},
		{Name: "get", Usage: "[MODEL]", Short: "Downloads a model, or lists the downloads", CobraFunc: defineGet},
		{
			Name: "import", Usage: "FILE | --from ollama|lmstudio|llama-swap [FOLDER|CONFIG]",
			Short: "Adds a model's file, or the models of another program", CobraFunc: defineImport,
		},
		{Name: "load", Usage: "MODEL", Short: "Loads a model into memory", CobraFunc: defineLoad},
		{Name: "log", Usage: "[--follow] [--model MODEL] [--level LEVEL]", Short: "Shows the log of the running server", CobraFunc: defineLog},
		{Name: "ls", Usage: "[--json]", Short: "Lists the models", CobraFunc: defineLS},
		{Name: "mcp", Usage: "ls | test NAME", Short: "Lists and tests the MCP servers whose tools models may use", CobraFunc: defineMCP},
		{Name: "ps", Usage: "[--wide] [--json]", Short: "Shows what the running server has loaded", CobraFunc: definePS},
		{Name: "restore", Usage: "FILE [--force]", Short: "Restores the home folder's state from a file", CobraFunc: defineRestore},
		{Name: "rm", Usage: "[MODEL]", Short: "Deletes a model's files", CobraFunc: defineRM},
		{
			Name: "runtime", Usage: "ls | get ENGINE | select NAME | remove NAME",
			Short: "Finds, downloads and selects the engines that run models", CobraFunc: defineRuntime,
		},
		{Name: "search", Usage: "WORDS [--limit N] [--json]", Short: "Searches for models to download", CobraFunc: defineSearch},
		{
			Name: "serve", Usage: "[--listen ADDRESS] [--models-dir FOLDER]", Short: "Serves models without a configuration file",
			Long:      "Serves the models in $LMCADDY_HOME/models, and in additional folders, on one address, without TLS.",
			CobraFunc: defineServe,
		},
		{
			Name: "service", Usage: "install | uninstall | restart | status | logs", Short: "Runs lmcaddy as a service of the system",
			CobraFunc: defineService,
		},
		{Name: "show", Usage: "MODEL [--json | --template]", Short: "Shows what is known of a model", CobraFunc: defineShow},
		{Name: "status", Usage: "[--json]", Short: "Shows whether a server is running, and what it serves", CobraFunc: defineStatus},
		{
			Name: "token", Usage: "create | ls | edit | revoke", Short: "Creates, lists, changes and revokes tokens",
			CobraFunc: defineToken,
		},
		{Name: "unload", Usage: "[INSTANCE | --all]", Short: "Unloads a model from memory", CobraFunc: defineUnload},
		{Name: "usage", Usage: "[--by model|token|day] [--since 7d]", Short: "Shows how many tokens were used", CobraFunc: defineUsage},
		{Name: "warm", Usage: "ls | clear", Short: "Lists and deletes the saved states of conversations", CobraFunc: defineWarm},
	}
}

// commands returns our commands.
func commands() []caddycmd.Command {
	all := ownCommands()
	for i := range all {
		define := all[i].CobraFunc
		all[i].CobraFunc = func(cmd *cobra.Command) {
			define(cmd)
			cmd.Aliases = append(cmd.Aliases, aliases[cmd.Name()]...)
			polish(cmd)
		}
	}
	return all
}

// register registers commands with Caddy, for a program whose help lists ours before Caddy's own.
func register(all []caddycmd.Command) {
	var first *cobra.Command
	for i, c := range all {
		define := c.CobraFunc
		c.CobraFunc = func(cmd *cobra.Command) {
			define(cmd)
			if i == 0 {
				first = cmd
			}
			if i == len(all)-1 { // the others have been added to the root
				arrangeProgram(first.Parent())
			}
		}
		caddycmd.RegisterCommand(c)
	}
}

// isBelowLM is true in a Caddy build other than lmcaddy, where our commands are below lm.
var isBelowLM bool

// RegisterLM registers the command lm, with our commands below it. It is called once, from an init function of the package that
// other Caddy builds import.
func RegisterLM() {
	isBelowLM = true
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "lm", Usage: "COMMAND", Short: "Manages models and the model server, and asks models",
		Long: `Manages the models of a server that has the app lm, and the engines that run them, and asks models.

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`,
		CobraFunc: defineLM,
	})
}

// defineLM defines the command lm.
func defineLM(lm *cobra.Command) {
	lm.Args = subcommandError
	lm.DisableFlagsInUseLine = true
	lm.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range append(commands(), everydayCommands(append(everydays, everydaysBelowLM...))...) {
		cmd := &cobra.Command{Use: c.Name + " " + c.Usage, Short: c.Short, Long: c.Long}
		c.CobraFunc(cmd)
		if c.Name == "serve" {
			cmd.PreRunE = func(*cobra.Command, []string) error { return becomeServer() }
		}
		renameIn(cmd)
		lm.AddCommand(cmd)
	}
	arrange(lm, "")
}

// renameIn changes the texts and errors of a command, and of those below it, by [inWords].
func renameIn(cmd *cobra.Command) {
	cmd.Long, cmd.Example = inWords(cmd.Long), inWords(cmd.Example)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = inWords(f.Usage) })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return renamed(check(cmd, args)) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return renamed(run(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		renameIn(sub)
	}
}

// renamedError is an error whose text is changed by [inWords].
type renamedError struct{ error }

func renamed(err error) error {
	if err == nil {
		return nil
	}
	return renamedError{err}
}

func (e renamedError) Error() string { return inWords(e.error.Error()) }
func (e renamedError) Unwrap() error { return e.error }

// mentioned matches a command in a text. All texts are written for the program lmcaddy.
var mentioned = sync.OnceValue(func() *regexp.Regexp {
	var names []string
	for _, g := range groups {
		names = append(names, g.commands...)
	}
	return regexp.MustCompile(`\blmcaddy (` + strings.Join(names, "|") + `)\b`)
})

// caddysNames are those of them that aren't below lm.
var caddysNames = []string{"run", "start", "stop", "reload", "version", "completion", "help"}

// inWords returns a text with the commands as they are typed in this program: in another Caddy build, "lmcaddy get" becomes
// "caddy lm get", and "lmcaddy run" becomes "caddy run".
func inWords(text string) string {
	if !isBelowLM {
		return text
	}
	return wordsBelowLM(text, cmp.Or(caddy.CustomBinaryName, "caddy"))
}

func wordsBelowLM(text, program string) string {
	return mentioned().ReplaceAllStringFunc(text, func(said string) string {
		name := strings.TrimPrefix(said, "lmcaddy ")
		if slices.Contains(caddysNames, name) {
			return program + " " + name
		}
		return program + " lm " + name
	})
}
