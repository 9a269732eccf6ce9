// Package command is the command line: commands that talk to a running server, commands that work on the home folder, and
// what makes a program lmcaddy rather than Caddy with our modules.
//
// Importing the package changes nothing. [Prepare] makes the process lmcaddy, with the commands at the top level.
// [RegisterLM] gives any other Caddy build one command, lm, with all of them below it.
package command

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/chat"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/server"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

func commands() []caddycmd.Command {
	var all []caddycmd.Command
	for _, c := range []struct {
		name, usage, short string
		define             func(*cobra.Command)
	}{
		{"backup", "FILE [--models]", "Saves the home folder's state to a file", server.DefineBackup},
		{"chat", "[MODEL] [--prompt TEXT]", "Asks a model of the running server", chat.Define},
		{"config", "[--path] [--json]", "Shows the configuration in force", server.DefineConfig},
		{
			"conversations", "ls | show | edit | rm | export | import", "Lists, shows and keeps stored conversations",
			chat.DefineConversations,
		},
		{"doctor", "[--json]", "Finds out what is wrong, and says what to do", server.DefineDoctor},
		{"get", "[MODEL]", "Downloads a model, or lists the downloads", models.DefineGet},
		{
			"import", "FILE | --from ollama|lmstudio|llama-swap [FOLDER|CONFIG]", "Adds a model's file, or the models of another program",
			models.DefineImport,
		},
		{"load", "MODEL", "Loads a model into memory", models.DefineLoad},
		{"log", "[--follow] [--model MODEL] [--level LEVEL]", "Shows the log of the running server", server.DefineLog},
		{"ls", "[FILTER] [--all] [--wide]", "Lists the models", models.DefineLS},
		{"mcp", "ls | test NAME", "Lists and tests the MCP servers whose tools models may use", chat.DefineMCP},
		{"pin", "MODEL", "Keeps a loaded model in memory", models.DefinePin},
		{"ps", "[--wide] [--json]", "Shows what the running server has loaded", server.DefinePS},
		{"restore", "FILE [--force]", "Restores the home folder's state from a file", server.DefineRestore},
		{"rm", "[MODEL]", "Deletes a model's files", models.DefineRM},
		{
			"runtime", "ls | get ENGINE | select NAME | remove NAME", "Finds, downloads and selects the engines that run models",
			server.DefineRuntime,
		},
		{"search", "WORDS [--limit N] [--json]", "Searches for models to download", models.DefineSearch},
		{"serve", "[--listen ADDRESS] [--models-dir FOLDER]", "Serves models without a configuration file", server.DefineServe},
		{"service", "install | uninstall | restart | status | logs", "Runs lmcaddy as a service of the system", server.DefineService},
		{"show", "MODEL [--json | --template]", "Shows what is known of a model", models.DefineShow},
		{"status", "[--json]", "Shows whether a server is running, and what it serves", server.DefineStatus},
		{"token", "create | ls | edit | revoke", "Creates, lists, changes and revokes tokens", server.DefineToken},
		{"unload", "[INSTANCE | --all]", "Unloads a model from memory", models.DefineUnload},
		{"unpin", "MODEL", "Lets a pinned model be unloaded again", models.DefineUnpin},
		{"usage", "[--by model|token|day] [--since 7d]", "Shows how many tokens were used", server.DefineUsage},
		{"warm", "ls | clear", "Lists and deletes the saved states of conversations", chat.DefineWarm},
	} {
		all = append(all, caddycmd.Command{Name: c.name, Usage: c.usage, Short: c.short, CobraFunc: func(cmd *cobra.Command) {
			c.define(cmd)
			cmd.Aliases = append(cmd.Aliases, aliases[cmd.Name()]...)
			polish(cmd)
		}})
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

// RegisterLM registers the command lm, with our commands below it. It is called once, from an init function of the package that
// other Caddy builds import.
func RegisterLM() {
	kit.IsBelowLM = true
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "lm", Usage: "COMMAND", Short: "Manages models and the model server, and asks models",
		Long: `Manages the models of a server that has the app lm, and the engines that run them, and asks models.

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`,
		CobraFunc: defineLM,
	})
}

func defineLM(lm *cobra.Command) {
	lm.Args = subcommandError
	lm.DisableFlagsInUseLine = true
	lm.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range append(commands(), everydayCommands(append(everydays, everydaysBelowLM...))...) {
		cmd := &cobra.Command{Use: c.Name + " " + c.Usage, Short: c.Short, Long: c.Long}
		c.CobraFunc(cmd)
		if c.Name == "serve" {
			cmd.PreRunE = func(*cobra.Command, []string) error { // serves as lmcaddy does, with all state in the home
				dir, err := home.FromEnvironment()
				if err != nil {
					return err
				}
				becomeProgram("", "")
				return settle(dir, true)
			}
		}
		renameIn(cmd)
		lm.AddCommand(cmd)
	}
	arrange(lm, "")
}

// renameIn changes the texts and errors of a command, and of those below it, by [inWords].
func renameIn(cmd *cobra.Command) {
	cmd.Long, cmd.Example = kit.InWords(cmd.Long), kit.InWords(cmd.Example)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = kit.InWords(f.Usage) })
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
	if err != nil {
		err = renamedError{err}
	}
	return err
}

func (e renamedError) Error() string { return kit.InWords(e.error.Error()) }
func (e renamedError) Unwrap() error { return e.error }
