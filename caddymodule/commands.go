package caddymodule

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

func init() {
	caddy.CustomBinaryName = "lmcaddy"
	caddy.CustomLongDescription = `lmcaddy turns a machine into a model server: it runs an engine for each loaded model, and serves the
OpenAI-style and the native API over them. It is a build of Caddy, and takes Caddy's configuration.

  lmcaddy runtime get llama.cpp   fetches the engine
  lmcaddy serve                   serves http://127.0.0.1:1234 without a configuration
  lmcaddy run                     serves what the Caddyfile in this folder says
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

// Prepare readies the process for Caddy's command line. It is to be called once, first thing in main. It makes the home
// folder known to Caddyfiles, keeps the admin endpoint, which may do everything, on a socket inside of it, and refuses to
// start a second server where Caddy wouldn't.
func Prepare() {
	dir, err := home.FromEnvironment()
	if err != nil {
		exit(err)
	}
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	settle(dir, command == "run" || command == "serve")
	if command != "run" {
		return
	}
	if _, err := os.Stat("Caddyfile"); len(os.Args) == 2 && os.IsNotExist(err) {
		os.Args[1] = "serve" // a bare run, with nothing to say what to do
		return
	}
	if err := preflight(configToRun(os.Args[2:])); err != nil {
		exit(err)
	}
}

// settle has Caddy keep its own state, such as certificates, inside the home too. Caddy reads some of it from the
// environment and some from variables that are set before main.
func settle(dir home.Dir, isServer bool) {
	if strings.Contains(string(dir), "|") {
		exit(fmt.Errorf("the home folder %s has a | in its path, which can't be in a socket's: choose another with LMCADDY_HOME", dir))
	}
	for _, name := range []string{home.Variable, "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		if err := os.Setenv(name, string(dir)); err != nil {
			exit(err)
		}
	}
	caddy.DefaultStorage = &certmagic.FileStorage{Path: caddy.AppDataDir()}
	caddy.ConfigAutosavePath = filepath.Join(caddy.AppConfigDir(), "autosave.json")
	if os.Getenv("CADDY_ADMIN") == "" {
		caddy.DefaultAdminListen = "unix/" + dir.AdminSocket() + "|0600"
		if isServer && strings.ContainsAny(string(dir), "{}") { // a server looks for placeholders in it; commands take it as it is
			caddy.DefaultAdminListen = strings.Replace(caddy.DefaultAdminListen, string(dir), "{env."+home.Variable+"}", 1)
		}
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "Error:", err)
	os.Exit(caddy.ExitCodeFailedStartup)
}
