package caddymodule

import (
	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddy.CustomBinaryName = "lmcaddy"
	caddy.CustomLongDescription = `lmcaddy turns a machine into a model server: it runs an engine for each loaded model, and serves
OpenAI-style, Anthropic-style and LM Studio's native APIs. It is a build of Caddy, and uses Caddy's configuration.

  lmcaddy runtime get llama.cpp   downloads the engine
  lmcaddy serve                   serves on http://127.0.0.1:1234 without a configuration
  lmcaddy run                     serves with the Caddyfile in this folder; without one, like serve
  lmcaddy get MODEL               downloads a model; lmcaddy import FILE adds a local file
  lmcaddy ls                      lists the models
  lmcaddy chat MODEL              asks one of them
  lmcaddy ps                      shows what is loaded
  lmcaddy token create            creates a token for sites with lm_auth

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`
	for _, c := range []caddycmd.Command{
		{Name: "chat", Usage: "MODEL [--prompt TEXT]", Short: "Asks a model of the running server", CobraFunc: chatCommand},
		{Name: "get", Usage: "[MODEL]", Short: "Downloads a model, or lists the downloads", CobraFunc: getCommand},
		{Name: "import", Usage: "FILE [--repo PUBLISHER/REPO]", Short: "Moves a model's file to the models folder", CobraFunc: importCommand},
		{Name: "load", Usage: "MODEL", Short: "Loads a model into memory", CobraFunc: loadCommand},
		{Name: "ls", Usage: "[--json]", Short: "Lists the models", CobraFunc: lsCommand},
		{Name: "ps", Usage: "[--json] [--address ADDRESS]", Short: "Shows what the running server has loaded", CobraFunc: psCommand},
		{Name: "rm", Usage: "MODEL", Short: "Deletes a model's files", CobraFunc: rmCommand},
		{
			Name: "runtime", Usage: "ls | get llama.cpp | select NAME | remove NAME",
			Short: "Finds, downloads and selects the engine that runs models", CobraFunc: runtimeCommand,
		},
		{
			Name: "serve", Usage: "[--listen ADDRESS] [--models-dir FOLDER]", Short: "Serves models without a configuration file",
			Long:      "Serves the models in $LMCADDY_HOME/models, and in additional folders, on one address, without TLS.",
			CobraFunc: serveCommand,
		},
		{Name: "status", Usage: "[--json]", Short: "Shows whether a server is running, and what it serves", CobraFunc: statusCommand},
		{
			Name: "token", Usage: "create | ls | edit | revoke", Short: "Creates, lists, changes and revokes tokens for sites with lm_auth",
			CobraFunc: tokenCommand,
		},
		{Name: "unload", Usage: "INSTANCE | --all", Short: "Unloads a model from memory", CobraFunc: unloadCommand},
	} {
		caddycmd.RegisterCommand(c)
	}
}
