package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/chat"
)

// aliases are other names of our commands, those of lms and ollama.
var aliases = map[string][]string{
	"get": {"pull"},
	"ls":  {"list"},
	"rm":  {"delete"},
}

// everyday is a word of lms or ollama that isn't a command of ours.
type everyday struct {
	word, then string // as in "server stop"; then is empty for the word with anything else
	runs       string // the command of ours that does the same
	says       string // otherwise: what to type instead
}

const (
	howToServe = `"lmcaddy start" starts a server in the background, "lmcaddy serve" one in this terminal, ` +
		`and "lmcaddy service install" one that starts with the machine`
	noAccount = `lmcaddy needs no account: the token for a hub goes into the Caddyfile (hub URL { token … }), ` +
		`and "lmcaddy token create" makes tokens for your own server`
	noUpload = `lmcaddy downloads models, and uploads none: publish them with the tools of the hub`
)

// everydays are the words. A word with nothing to run or say is one of our program's own, in another Caddy build.
var everydays = []everyday{
	{word: "server", then: "status", runs: "status"},
	{word: "server", then: "stop", runs: "stop"},
	{word: "server", says: howToServe},
	{word: "daemon", then: "status", runs: "status"},
	{word: "daemon", then: "down", runs: "stop"},
	{word: "daemon", says: howToServe},
	{word: "bootstrap", says: `nothing has to be set up: "lmcaddy runtime get llama.cpp" downloads an engine, "lmcaddy serve" serves`},
	{word: "clone", says: `"lmcaddy get MODEL" downloads a model`},
	{word: "cp", says: `a model gets another name in the Caddyfile (model KEY { alias NAME }), ` +
		`and a file another place by "lmcaddy import FILE --repo PUBLISHER/NAME --link"`},
	{word: "create", says: `a GGUF file becomes a model by "lmcaddy import FILE"; its settings go into the Caddyfile (model KEY { … })`},
	{word: "flags", says: `"lmcaddy config" shows the settings in force`},
	{word: "dev", says: `lmcaddy has no plugins of its own: models use the tools of MCP servers, which "lmcaddy mcp ls" lists`},
	{word: "launch", says: `start the program yourself, with the server's address and a token: docs/recipes describes many`},
	{word: "link", says: `models of another machine are used over its server: "lmcaddy ls --host URL", "lmcaddy chat MODEL --host URL"`},
	{word: "login", says: noAccount},
	{word: "logout", says: noAccount},
	{word: "push", says: noUpload},
	{word: "publish", says: noUpload},
	{word: "signin", says: noAccount},
	{word: "signout", says: noAccount},
	{word: "whoami", says: noAccount},
}

// everydaysBelowLM are commands of Caddy's, of which there are none below lm.
var everydaysBelowLM = []everyday{
	{word: "run", says: `"lmcaddy run" serves with a Caddyfile; "lmcaddy chat MODEL" asks a model`},
	{word: "start", says: howToServe},
	{word: "stop", says: `"lmcaddy unload MODEL" unloads a model; Ctrl-C ends a server`},
}

// everydayCommands returns the words as commands that no help lists.
func everydayCommands(all []everyday) []caddycmd.Command {
	var commands []caddycmd.Command
	for _, e := range all {
		if slices.ContainsFunc(commands, func(c caddycmd.Command) bool { return c.Name == e.word }) {
			continue
		}
		commands = append(commands, caddycmd.Command{Name: e.word, Short: "Says what to type instead", CobraFunc: func(cmd *cobra.Command) {
			cmd.Hidden, cmd.DisableFlagParsing = true, true
			cmd.RunE = func(cmd *cobra.Command, args []string) error { return answerEveryday(cmd, all, args) }
		}})
	}
	return commands
}

// answerEveryday runs the command that does what was asked, or returns an error that says what to type.
func answerEveryday(cmd *cobra.Command, all []everyday, args []string) error {
	for _, e := range all {
		switch {
		case e.word != cmd.Name():
		case e.then == "":
			return fmt.Errorf("there is no command \"%s\": %s", cmd.CommandPath(), e.says)
		case len(args) > 0 && args[0] == e.then:
			return become(cmd, e.runs, args[1:])
		}
	}
	return errors.New("there is no such command")
}

// become runs another command, with arguments that haven't been parsed.
func become(cmd *cobra.Command, name string, args []string) error {
	all := slices.Concat(cmd.Parent().Commands(), cmd.Root().Commands()) // the latter has those of Caddy
	i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return fmt.Errorf("there is no command %q", name)
	}
	other := all[i]
	other.SetContext(cmd.Context())
	other.InitDefaultHelpFlag()
	if err := other.ParseFlags(args); err != nil {
		return other.FlagErrorFunc()(other, err)
	}
	if help, err := other.Flags().GetBool("help"); err == nil && help {
		return other.Help()
	}
	if err := other.ValidateArgs(other.Flags().Args()); err != nil {
		return err
	}
	return other.RunE(other, other.Flags().Args())
}

// ofOllama rewrites a command line of ollama's for which Caddy has another meaning: "run MODEL" asks a model, and "stop MODEL"
// unloads it. All others are returned as they are.
func ofOllama(args []string) []string {
	if len(args) < 2 || args[1] == "" || strings.HasPrefix(args[1], "-") || isConfig(args[1]) {
		return args
	}
	switch args[0] {
	case "run":
		rewritten, prompt := []string{"chat", args[1]}, []string{}
		asking := new(cobra.Command)
		chat.Define(asking)
		for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
			switch arg := rest[0]; {
			case arg == "--":
				prompt, rest = append(prompt, rest[1:]...), rest[:1]
			case len(arg) < 2 || arg[0] != '-':
				prompt = append(prompt, arg)
			case len(rest) > 1 && takesValue(asking, arg):
				rewritten, rest = append(rewritten, arg, rest[1]), rest[1:]
			default:
				rewritten = append(rewritten, arg)
			}
		}
		if len(prompt) > 0 {
			rewritten = append(rewritten, "--prompt", strings.Join(prompt, " "))
		}
		return rewritten
	case "stop":
		return append([]string{"unload"}, args[1:]...)
	}
	return args
}

func isConfig(arg string) bool {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		return true
	}
	name := strings.ToLower(filepath.Base(arg))
	return strings.HasPrefix(name, "caddyfile") || slices.Contains([]string{".json", ".caddyfile", ".yaml", ".yml"}, filepath.Ext(name))
}

// takesValue reports whether a flag of a command line is followed by its value, rather than having it behind an equals sign.
func takesValue(cmd *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	f := cmd.Flags().Lookup(strings.TrimPrefix(arg, "--"))
	if !strings.HasPrefix(arg, "--") {
		f = cmd.Flags().ShorthandLookup(arg[len(arg)-1:]) // of several letters, the last one
	}
	return f != nil && f.NoOptDefVal == ""
}

const (
	asksNothing = "leave it out"
	byEngine    = `the engine decides this by itself; "args" of the model in the Caddyfile overrides it (args --n-gpu-layers 20)`
	byDraft     = `name the draft model's key in the Caddyfile (model KEY { draft_model KEY })`
	chosenTags  = `put @ and the quantization behind the name, as in "lmcaddy get unsloth/Qwen3-4B-GGUF@Q8_0"`
	everyKind   = `"lmcaddy ls" lists all models, with a column for their types`
	oneAddress  = `--listen does this, as in "lmcaddy serve --listen 127.0.0.1:8080"`
	everyModel  = `it serves all models, and loads those that are asked for; --models-dir adds a folder of them`
	oneRelease  = `"lmcaddy runtime get llama.cpp" gets the newest release, and --version another`
)

// everydayFlags are flags of lms and ollama that the commands of ours with the same names haven't, and what to type instead.
var everydayFlags = map[string]map[string]string{
	"chat": {
		"verbose": "--stats prints tokens and times", "keepalive": "--ttl says how long the model stays loaded",
		"think":        "--reasoning on or off does this",
		"hidethinking": "only the answer goes to standard output, what the model thinks goes to standard error",
		"nowordwrap":   asksNothing, "insecure": asksNothing,
		"format": "the field response_format of the APIs does this", "truncate": "the endpoint /v1/embeddings embeds texts",
		"dimensions":         "the endpoint /v1/embeddings embeds texts",
		"dont-fetch-catalog": asksNothing, "system-prompt": "--system does this",
		"model": `name the model first, as in "lmcaddy chat qwen3-4b"`,
	},
	"get": {
		"yes": asksNothing, "y": asksNothing, "insecure": asksNothing, "select": chosenTags,
		"mlx": "name a repository that has the model as MLX", "gguf": "name a repository that has the model as GGUF",
	},
	"import": {
		"user-repo": "--repo PUBLISHER/NAME does this", "symbolic-link": "--link does this", "yes": asksNothing, "y": asksNothing,
	},
	"load": {
		"gpu": byEngine, "n-gpu-layers": byEngine, "ngl": byEngine, "ctx-size": "--context-length does this", "yes": asksNothing, "y": asksNothing, "exact": "names are always exact: leave it out",
		"local":                   "leave it out: only --host asks another machine",
		"speculative-draft-model": byDraft, "speculative-draft-simple": byDraft, "speculative-draft-mtp": byDraft,
		"no-speculative-draft-mtp": byDraft,
	},
	"log": {
		"source": "--engine adds what engines write", "s": "--engine adds what engines write",
		"stats":  "--level debug shows the tokens and times of each request",
		"filter": "what is asked and answered isn't in the log: the option inspect of the Caddyfile keeps the newest requests",
	},
	"ls": {
		"llm": everyKind, "embedding": everyKind, "detailed": `"lmcaddy show MODEL" shows all of a model`,
		"variants": "each variant is a model of its own, such as qwen/qwen3-4b@q8_0",
	},
	"serve": {"port": oneAddress, "p": oneAddress, "host": oneAddress, "address": oneAddress, "model": everyModel, "m": everyModel},
	"show": {
		"modelfile": "leave it out: the model's settings are shown", "parameters": `"lmcaddy config" shows the settings of models`,
		"system":  `system prompts are in presets, which "lmcaddy config" shows`,
		"license": asksNothing, "verbose": "--json prints everything", "v": "--json prints everything",
	},
	"runtime get": {
		"list": `"lmcaddy runtime ls" lists them`, "l": `"lmcaddy runtime ls" lists them`, "channel": oneRelease,
		"allow-incompatible": "--variant gets any build", "yes": asksNothing, "y": asksNothing,
	},
	"runtime remove": {"yes": asksNothing, "y": asksNothing, "dry-run": `"lmcaddy runtime ls" lists what there is`},
	"runtime select": {"latest": oneRelease},
	"runtime":        {"all": oneRelease, "a": oneRelease},
}

// everydaySubcommands are commands of lms below one that we have, too, and what to type instead.
var everydaySubcommands = map[string]string{
	"runtime update": oneRelease, "runtime list": `"lmcaddy runtime ls" lists them`,
	"runtime survey": `"lmcaddy doctor" looks at GPUs and memory`,
}

// everydayFlag says what to type instead of a flag of lms or ollama; empty: it is none.
func everydayFlag(cmd *cobra.Command, flag string) string {
	name := cmd.Name()
	if parent := cmd.Parent(); parent != nil && parent.Name() == "runtime" {
		name = "runtime " + name
	}
	said := everydayFlags[name][flag]
	if said == "" && cmd.Flags().Lookup("host") != nil {
		said = map[string]string{
			"port":  "the address of a server is --host http://127.0.0.1:1234",
			"quiet": "notes are on standard error: 2>/dev/null hides them", "log-level": asksNothing,
		}[flag]
	}
	return said
}
