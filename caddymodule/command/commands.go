// Package command is the command line: commands that talk to a running server, commands that work on the home folder, and
// what makes a program lmcaddy rather than Caddy with our modules.
//
// Importing the package changes nothing. [Prepare] makes the process lmcaddy, with the commands at the top level.
// [RegisterLM] gives any other Caddy build one command, lm, with all of them below it.
package command

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const description = `lmcaddy turns a machine into a model server: it runs an engine for each loaded model, and serves
OpenAI-style, Anthropic-style and LM Studio's native APIs. It is a build of Caddy, and uses Caddy's configuration.

  lmcaddy runtime get llama.cpp   downloads an engine
  lmcaddy serve                   serves on http://127.0.0.1:1234 without a configuration
  lmcaddy run                     serves with the Caddyfile in this folder; without one, like serve
  lmcaddy get MODEL               downloads a model; lmcaddy import FILE adds a local file
  lmcaddy ls                      lists the models
  lmcaddy chat MODEL              asks one of them
  lmcaddy ps                      shows what is loaded
  lmcaddy token create            creates a token for sites with lm_auth

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`

// commands returns our commands.
func commands() []caddycmd.Command {
	return []caddycmd.Command{
		{Name: "chat", Usage: "MODEL [--prompt TEXT]", Short: "Asks a model of the running server", CobraFunc: defineChat},
		{Name: "get", Usage: "[MODEL]", Short: "Downloads a model, or lists the downloads", CobraFunc: defineGet},
		{Name: "import", Usage: "FILE [--repo PUBLISHER/REPO]", Short: "Moves a model's file to the models folder", CobraFunc: defineImport},
		{Name: "load", Usage: "MODEL", Short: "Loads a model into memory", CobraFunc: defineLoad},
		{Name: "ls", Usage: "[--json]", Short: "Lists the models", CobraFunc: defineLS},
		{Name: "mcp", Usage: "ls | test NAME", Short: "Lists and tests the MCP servers whose tools models may use", CobraFunc: defineMCP},
		{Name: "ps", Usage: "[--json] [--address ADDRESS]", Short: "Shows what the running server has loaded", CobraFunc: definePS},
		{Name: "rm", Usage: "MODEL", Short: "Deletes a model's files", CobraFunc: defineRM},
		{
			Name: "runtime", Usage: "ls | get ENGINE | select NAME | remove NAME",
			Short: "Finds, downloads and selects the engines that run models", CobraFunc: defineRuntime,
		},
		{
			Name: "serve", Usage: "[--listen ADDRESS] [--models-dir FOLDER]", Short: "Serves models without a configuration file",
			Long:      "Serves the models in $LMCADDY_HOME/models, and in additional folders, on one address, without TLS.",
			CobraFunc: defineServe,
		},
		{Name: "status", Usage: "[--json]", Short: "Shows whether a server is running, and what it serves", CobraFunc: defineStatus},
		{
			Name: "token", Usage: "create | ls | edit | revoke", Short: "Creates, lists, changes and revokes tokens for sites with lm_auth",
			CobraFunc: defineToken,
		},
		{Name: "unload", Usage: "INSTANCE | --all", Short: "Unloads a model from memory", CobraFunc: defineUnload},
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
	lm.Args = cobra.NoArgs
	lm.DisableFlagsInUseLine = true
	lm.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range commands() {
		cmd := &cobra.Command{Use: c.Name + " " + c.Usage, Short: c.Short, Long: c.Long}
		c.CobraFunc(cmd)
		if c.Name == "serve" {
			cmd.PreRunE = func(*cobra.Command, []string) error { return becomeServer() }
		}
		renameIn(cmd)
		lm.AddCommand(cmd)
	}
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
var mentioned = regexp.MustCompile(`\blmcaddy (chat|get|import|load|ls|mcp|ps|rm|runtime|serve|status|token|unload|run)\b`)

// inWords returns a text with the commands as they are typed in this program: in another Caddy build, "lmcaddy get" becomes
// "caddy lm get", and "lmcaddy run" becomes "caddy run".
func inWords(text string) string {
	if !isBelowLM {
		return text
	}
	return wordsBelowLM(text, cmp.Or(caddy.CustomBinaryName, "caddy"))
}

func wordsBelowLM(text, program string) string {
	return mentioned.ReplaceAllStringFunc(text, func(said string) string {
		name := strings.TrimPrefix(said, "lmcaddy ")
		if name == "run" {
			return program + " run"
		}
		return program + " lm " + name
	})
}
