package caddymodule

import (
	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddy.CustomBinaryName = "lmcaddy"
	caddy.CustomLongDescription = `lmcaddy turns a machine into a model server: it runs an engine for each loaded model, and serves the
OpenAI-style and the native API over them. It is a build of Caddy, and takes Caddy's configuration.

  lmcaddy runtime get llama.cpp   fetches the engine
  lmcaddy serve                   serves http://127.0.0.1:1234 without a configuration
  lmcaddy run                     serves what the Caddyfile in this folder says; without one, as serve does
  lmcaddy get MODEL               downloads a model; lmcaddy import FILE takes one that is there
  lmcaddy ls                      lists the models
  lmcaddy chat MODEL              asks one of them
  lmcaddy ps                      shows what is loaded
  lmcaddy token create            makes a token, for sites with lm_auth

State is kept in $LMCADDY_HOME, ~/.lmcaddy by default.`
	for _, c := range []caddycmd.Command{
		{Name: "chat", Usage: "MODEL [--prompt TEXT]", Short: "Asks a model of the running server", CobraFunc: chatCommand},
		{Name: "get", Usage: "[MODEL]", Short: "Downloads a model, or lists the downloads", CobraFunc: getCommand},
		{Name: "import", Usage: "FILE [--repo PUBLISHER/REPO]", Short: "Takes a model's file into the models folder", CobraFunc: importCommand},
		{Name: "load", Usage: "MODEL", Short: "Loads a model into memory", CobraFunc: loadCommand},
		{Name: "ls", Usage: "[--json]", Short: "Lists the models", CobraFunc: lsCommand},
		{Name: "ps", Usage: "[--json] [--address ADDRESS]", Short: "Shows what the running server has loaded", CobraFunc: psCommand},
		{Name: "rm", Usage: "MODEL", Short: "Deletes a model's files", CobraFunc: rmCommand},
		{
			Name: "runtime", Usage: "ls | get llama.cpp | select NAME | remove NAME",
			Short: "Finds, fetches and selects the engine that runs models", CobraFunc: runtimeCommand,
		},
		{
			Name: "serve", Usage: "[--listen ADDRESS] [--models-dir FOLDER]", Short: "Serves models without a configuration file",
			Long:      "Serves the models of $LMCADDY_HOME/models, and of further folders, on one address, without TLS.",
			CobraFunc: serveCommand,
		},
		{Name: "status", Usage: "[--json]", Short: "Tells whether a server runs, and what it serves", CobraFunc: statusCommand},
		{
			Name: "token", Usage: "create | ls | edit | revoke", Short: "Makes, lists, changes and revokes the tokens of a server with lm_auth",
			CobraFunc: tokenCommand,
		},
		{Name: "unload", Usage: "INSTANCE | --all", Short: "Unloads a model from memory", CobraFunc: unloadCommand},
	} {
		caddycmd.RegisterCommand(c)
	}
}
