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

// ownCommands returns our commands as they define themselves.
func ownCommands() []caddycmd.Command {
	return []caddycmd.Command{
		{Name: "backup", Usage: "FILE [--models]", Short: "Saves the home folder's state to a file", CobraFunc: server.DefineBackup},
		{Name: "chat", Usage: "[MODEL] [--prompt TEXT]", Short: "Asks a model of the running server", CobraFunc: chat.Define},
		{Name: "config", Usage: "[--path] [--json]", Short: "Shows the configuration in force", CobraFunc: server.DefineConfig},
		{
			Name: "conversations", Usage: "ls | show ID | rm ID | export ID",
			Short:     "Lists, shows, deletes and exports stored conversations",
			CobraFunc: chat.DefineConversations,
		},
		{Name: "doctor", Usage: "[--json]", Short: "Finds out what is wrong, and says what to do", CobraFunc: server.DefineDoctor},
		{Name: "get", Usage: "[MODEL]", Short: "Downloads a model, or lists the downloads", CobraFunc: models.DefineGet},
		{
			Name: "import", Usage: "FILE | --from ollama|lmstudio|llama-swap [FOLDER|CONFIG]",
			Short: "Adds a model's file, or the models of another program", CobraFunc: models.DefineImport,
		},
		{Name: "load", Usage: "MODEL", Short: "Loads a model into memory", CobraFunc: models.DefineLoad},
		{
			Name: "log", Usage: "[--follow] [--model MODEL] [--level LEVEL]", Short: "Shows the log of the running server",
			CobraFunc: server.DefineLog,
		},
		{Name: "ls", Usage: "[--json]", Short: "Lists the models", CobraFunc: models.DefineLS},
		{
			Name: "mcp", Usage: "ls | test NAME", Short: "Lists and tests the MCP servers whose tools models may use",
			CobraFunc: chat.DefineMCP,
		},
		{Name: "ps", Usage: "[--wide] [--json]", Short: "Shows what the running server has loaded", CobraFunc: server.DefinePS},
		{Name: "restore", Usage: "FILE [--force]", Short: "Restores the home folder's state from a file", CobraFunc: server.DefineRestore},
		{Name: "rm", Usage: "[MODEL]", Short: "Deletes a model's files", CobraFunc: models.DefineRM},
		{
			Name: "runtime", Usage: "ls | get ENGINE | select NAME | remove NAME",
			Short: "Finds, downloads and selects the engines that run models", CobraFunc: server.DefineRuntime,
		},
		{Name: "search", Usage: "WORDS [--limit N] [--json]", Short: "Searches for models to download", CobraFunc: models.DefineSearch},
		{
			Name: "serve", Usage: "[--listen ADDRESS] [--models-dir FOLDER]", Short: "Serves models without a configuration file",
			Long:      "Serves the models in $LMCADDY_HOME/models, and in additional folders, on one address, without TLS.",
			CobraFunc: server.DefineServe,
		},
		{
			Name: "service", Usage: "install | uninstall | restart | status | logs", Short: "Runs lmcaddy as a service of the system",
			CobraFunc: server.DefineService,
		},
		{Name: "show", Usage: "MODEL [--json | --template]", Short: "Shows what is known of a model", CobraFunc: models.DefineShow},
		{Name: "status", Usage: "[--json]", Short: "Shows whether a server is running, and what it serves", CobraFunc: server.DefineStatus},
		{
			Name: "token", Usage: "create | ls | edit | revoke", Short: "Creates, lists, changes and revokes tokens",
			CobraFunc: server.DefineToken,
		},
		{Name: "unload", Usage: "[INSTANCE | --all]", Short: "Unloads a model from memory", CobraFunc: models.DefineUnload},
		{
			Name: "usage", Usage: "[--by model|token|day] [--since 7d]", Short: "Shows how many tokens were used",
			CobraFunc: server.DefineUsage,
		},
		{Name: "warm", Usage: "ls | clear", Short: "Lists and deletes the saved states of conversations", CobraFunc: chat.DefineWarm},
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

// defineLM defines the command lm.
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
	if err == nil {
		return nil
	}
	return renamedError{err}
}

func (e renamedError) Error() string { return kit.InWords(e.error.Error()) }
func (e renamedError) Unwrap() error { return e.error }
