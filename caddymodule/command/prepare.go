package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/server"
	"github.com/lmcaddy/lmcaddy/internal/backup"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/resident"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
)

// Prepare makes the process lmcaddy, before Caddy's command line runs. Main calls it once, first of all. It gives the program its name and
// its commands, makes the home folder known to Caddyfiles, and puts the admin endpoint, which has all rights, on a socket in the home. It
// refuses what Caddy wouldn't: a second server, commands that would replace this program by another build, and arguments that are ignored.
func Prepare() {
	caddy.CustomBinaryName, caddy.CustomLongDescription = "lmcaddy", description
	register(append(commands(), everydayCommands(everydays)...))
	caddyconfig.RegisterAdapter(server.Adapter, server.Caddyfile{})
	os.Args = append(os.Args[:1:1], ofOllama(os.Args[1:])...)
	args := os.Args[1:]
	becomeProgram(cmp.Or(caddy.CustomVersion, "development"), server.ConfigFile(args)) // caddy.Version would give Caddy's own
	dir, err := home.FromEnvironment()
	if asksForHelp(args) {
		if dir != "" {
			_ = settle(dir, false) // the help of some flags shows it
		}
		return
	}
	if len(args) == 1 && slices.Contains([]string{"version", "--version", "-v"}, args[0]) {
		if _, err := fmt.Println(version()); err != nil {
			exit(err)
		}
		os.Exit(caddy.ExitCodeSuccess)
	}
	command := args[0]
	if errors.As(err, new(*home.UnusableError)) && !slices.Contains([]string{"run", "start", "reload", "stop"}, command) {
		err = nil // our commands find it themselves, unless they don't need the home
	}
	if err == nil {
		err = errors.Join(refused(command), unknownCommand(command), strayArgument(command, args[1:]))
	}
	if err == nil {
		err = settle(dir, command == "run" || command == "serve")
	}
	if err == nil && (command == "run" || command == "start") {
		err = completeRestore(dir)
	}
	switch {
	case err != nil:
	case command == "run":
		err = prepareRun(dir, args[1:])
	case command == "validate":
		os.Args = append(os.Args[:2:2], server.Quietly(args[1:])...)
		wrapLog(warningsOnTerminal)
	case command == "start":
		_, err = server.ConfigToRun(args[1:])
	case command == "stop":
		err = checkStop(dir, args[1:])
	case command == "reload" && server.SaysNothing(args[1:]):
		err = errors.New("there is no Caddyfile in this folder: name one with --config FILE")
	case command == "reload":
		os.Args = append(os.Args[:2:2], server.Quietly(args[1:])...)
	}
	if err != nil {
		exit(err)
	}
	if command == "run" || command == "serve" {
		caddymodule.FeedWatchdog()
	}
	wrapLog(func(core zapcore.Core) zapcore.Core { return plainErrors{core, os.Stderr, false} })
}

// warningsOnTerminal leaves out information on a terminal.
func warningsOnTerminal(core zapcore.Core) zapcore.Core {
	if terminal.Is(os.Stderr) {
		core, _ = zapcore.NewIncreaseLevelCore(core, zapcore.WarnLevel) // which is a higher level
	}
	return core
}

// garbagePercent is how much garbage there may be to what is in use. A busy server has about 11 MB in use, so half as much garbage again as
// Go's 100 is little memory, and garbage collection takes a third less time.
const garbagePercent = 150

// becomeProgram makes Caddy and our modules do what only our own program does: print errors as sentences, say where it serves,
// drop false warnings, and give back what only the start needed. An empty version stands for that of our module.
func becomeProgram(version, configFile string) {
	var once sync.Once
	caddymodule.SetProgram(caddymodule.Program{
		Version: version, ConfigFile: configFile,
		LogReady: func() {
			wrapLog(func(core zapcore.Core) zapcore.Core {
				return plainErrors{warningFilter{caddymodule.Recorded(core)}, os.Stderr, true}
			})
		},
		Serving: func(addresses []string, n *node.Node, listsAll bool) {
			once.Do(func() {
				terminal.Println(os.Stdout, "Serving on", strings.Join(addresses, ", "))
				go func() {
					if os.Getenv("GOGC") == "" {
						debug.SetGCPercent(garbagePercent)
					}
					fmt.Print(terminal.Text(kit.InWords(firstSteps(n, listsAll))))
					_ = resident.Release() // if it can't, that does no harm
					resident.Watch()
				}()
			})
		},
		PlainHTTP1: true,
	})
}

// completeRestore completes a restore that was interrupted, before the Caddyfile is read, which may be one of its files.
func completeRestore(dir home.Dir) error {
	if !backup.IsHalfway(dir) {
		return nil
	}
	lock, err := node.Reserve(dir)
	if err != nil {
		return err
	}
	return lock.Release()
}

// prepareRun makes a run without a configuration serve what `lmcaddy serve` does, and refuses a second server.
func prepareRun(dir home.Dir, args []string) error {
	if server.SaysNothing(args) {
		file, err := server.WriteServeConfig(dir)
		if err != nil {
			return err
		}
		args = append(args, "--config", file)
	}
	config, err := server.ConfigToRun(args)
	if err != nil {
		return err
	}
	os.Args = append(os.Args[:2:2], server.Quietly(args)...)
	return server.Preflight(config)
}

// asksForHelp reports whether the command line only asks for help, which is given whatever else is wrong.
func asksForHelp(args []string) bool {
	if len(args) == 0 || slices.Contains([]string{"help", "completion", "manpage", "__complete", "__completeNoDesc"}, args[0]) {
		return true
	}
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

func version() string {
	own := caddy.CustomVersion
	caddy.CustomVersion = "" // else Version puts it before Caddy's
	caddys, _ := caddy.Version()
	caddy.CustomVersion = own
	if own == "" {
		own = "development"
	}
	return fmt.Sprintf("lmcaddy %s (Caddy %s, %s, %s/%s)", own, caddys, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// refused is the error of a command of Caddy's that would replace this program by a build without its modules.
func refused(command string) error {
	switch command {
	case "upgrade":
		return errors.New("lmcaddy upgrade would fetch a build of Caddy without lmcaddy in it. " +
			"To upgrade, update the source (git pull) and run make build, or install a newer release")
	case "add-package", "remove-package":
		return fmt.Errorf("lmcaddy %s would fetch a build of Caddy without lmcaddy in it. "+
			"Caddy's modules are chosen when lmcaddy is built: change the imports of cmd/lmcaddy/main.go, and run make build", command)
	default:
		return nil
	}
}

// unknownCommand is the error about a command that there isn't, with the one that is most like it.
func unknownCommand(name string) error {
	if strings.HasPrefix(name, "-") { // a flag
		return nil
	}
	var known []string
	for word := range caddycmd.Commands() {
		isEveryday := slices.ContainsFunc(everydays, func(e everyday) bool { return e.word == word })
		if name == word {
			return nil
		}
		if refused(word) == nil && !isEveryday {
			known = append(known, word)
		}
	}
	for _, others := range aliases {
		known = append(known, others...)
	}
	if slices.Contains(known, name) {
		return nil
	}
	slices.Sort(known)
	said := fmt.Sprintf("lmcaddy has no command %q", name)
	if near := nearest.DidYouMean(name, known); near != "" {
		return errors.New(said + near)
	}
	return errors.New(said + ": \"lmcaddy --help\" lists them")
}

// withoutArguments are commands that take flags alone, and ignore arguments.
var withoutArguments = []string{
	"adapt", "build-info", "environ", "list-modules", "reload", "run", "serve", "start", "stop", "trust", "untrust", "validate", "version",
}

// strayArgument returns an error about an argument that a command would ignore.
func strayArgument(name string, args []string) error {
	known, ok := caddycmd.Commands()[name]
	if !ok || !slices.Contains(withoutArguments, name) {
		return nil
	}
	cmd := &cobra.Command{Use: name}
	switch {
	case known.CobraFunc != nil:
		known.CobraFunc(cmd)
	case known.Flags != nil:
		cmd.Flags().AddGoFlagSet(known.Flags)
	}
	if cmd.ParseFlags(args) != nil || cmd.Flags().NArg() == 0 {
		return nil // Caddy reports unknown flags
	}
	hint := ""
	if name != "stop" && cmd.Flags().Lookup("config") != nil {
		hint = "; a configuration is given by --config FILE"
	}
	return fmt.Errorf("lmcaddy %s takes no arguments, and was given %q%s", name, cmd.Flags().Arg(0), hint)
}

// settle puts Caddy's own state, such as certificates, into the home too. Caddy reads some of it from the
// environment and some from variables that are set before main.
func settle(dir home.Dir, isServer bool) error {
	if strings.Contains(string(dir), "|") {
		return fmt.Errorf("the home folder %s has a | in its path, which can't be in a socket's: choose another with LMCADDY_HOME", dir)
	}
	for _, name := range []string{home.Variable, "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		if err := os.Setenv(name, string(dir)); err != nil {
			return err
		}
	}
	caddy.DefaultStorage = &certmagic.FileStorage{Path: caddy.AppDataDir()}
	caddy.ConfigAutosavePath = filepath.Join(caddy.AppConfigDir(), "autosave.json")
	if os.Getenv("CADDY_ADMIN") == "" {
		caddy.DefaultAdminListen = "unix/" + dir.AdminSocket() + "|0600"
		if isServer && strings.ContainsAny(string(dir), "{}") { // a server replaces placeholders in it; commands don't
			caddy.DefaultAdminListen = strings.Replace(caddy.DefaultAdminListen, string(dir), "{env."+home.Variable+"}", 1)
		}
	}
	return nil
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "Error:", terminal.Text(err.Error()))
	os.Exit(caddy.ExitCodeFailedStartup)
}
