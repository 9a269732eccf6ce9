package caddymodule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/echoengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// withEcho are the engines that there are, and one that has an option of its own: greeting.
func withEcho() []node.Engine {
	return append(node.Engines(), node.Engine{Engine: echoengine.Engine(), Wire: echoengine.Wire{}})
}

func TestApp_Engine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want map[string]node.EngineSettings
		err  string
	}{
		"an option of its own": {
			"engine echo {\nargs --x\ngreeting /a\nparallel 2\n}", map[string]node.EngineSettings{"echo": {Parallel: 2, Args: []string{"--greeting", "/a", "--x"}}}, "",
		},
		"both": {
			"engine echo\nengine llama_server {\nsandbox off\n}", map[string]node.EngineSettings{"echo": {}, "llama_server": {Sandbox: supervisor.Off}}, "",
		},
		"a wrong value":        {"engine echo {\ngreeting\n}", nil, "give one text, at Testfile:2"},
		"another's option":     {"engine llama_server {\ngreeting /a\n}", nil, `engine llama_server: unknown option "greeting"; there are: args, parallel, path, sandbox, sandbox_read, at Testfile:2`},
		"an option that isn't": {"engine echo {\ngreetings /a\n}", nil, `engine echo: unknown option "greetings"; there are: args, greeting, parallel, path, sandbox, sandbox_read, at Testfile:2`},
		"an engine that isn't": {"engine mlx", nil, `engine: "mlx" is not one of: llama_server, mlx_lm, echo, at Testfile:1`},
		"an engine of no name": {`engine ""`, nil, `engine: "" is not one of: llama_server, mlx_lm, echo, at Testfile:1`},
		"no engine":            {"engine", nil, "wrong argument count"},
		"more than its name":   {"engine echo 1", nil, "wrong argument count"},
		"a command": {
			"engine mlx_lm {\ncommand python3 -m mlx_lm server\nsandbox off\nargs --log-level DEBUG\n}",
			map[string]node.EngineSettings{"mlx_lm": {Command: []string{"python3", "-m", "mlx_lm", "server"}, Sandbox: supervisor.Off, Args: []string{"--log-level", "DEBUG"}}},
			"",
		},
		"a later command":       {"engine mlx_lm {\ncommand a b\n}\nengine mlx_lm {\ncommand c\n}", map[string]node.EngineSettings{"mlx_lm": {Command: []string{"c"}}}, ""},
		"no command":            {"engine mlx_lm {\ncommand\n}", nil, "wrong argument count"},
		"an empty command":      {"engine mlx_lm {\ncommand \"\"\n}", nil, "engine mlx_lm: command: the first word must be the executable, at Testfile:2"},
		"a path as a command":   {"engine mlx_lm {\npath /a\n}", map[string]node.EngineSettings{"mlx_lm": {Path: "/a", Command: []string{"/a"}}}, ""},
		"a path and a command":  {"engine mlx_lm {\npath /a\ncommand b\n}", nil, `engine mlx_lm: "path" and "command" both name the executable: leave one of them out, at Testfile:3`},
		"a command of a path":   {"engine llama_server {\ncommand a\n}", nil, `engine llama_server: there is no option "command": set "path" to the executable, at Testfile:2`},
		"a sandbox":             {"engine mlx_lm {\nsandbox on\n}", nil, "engine mlx_lm: it can't run in the sandbox, because Python and whatever else its command starts need files and programs that the sandbox can't know: leave out \"sandbox on\" and \"sandbox_read\", at Testfile:2"},
		"a hole in a sandbox":   {"engine mlx_lm {\nsandbox_read /a\n}", nil, "engine mlx_lm: it can't run in the sandbox"},
		"an option of neither":  {"engine mlx_lm {\ngreeting /a\n}", nil, `engine mlx_lm: unknown option "greeting"; there are: args, command, parallel, path, sandbox, at Testfile:2`},
		"two blocks of the one": {"engine echo {\nargs 1\n}\nengine echo {\nargs 2\n}", map[string]node.EngineSettings{"echo": {Args: []string{"1", "2"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := new(App)
			d := caddyfile.NewTestDispenser(tt.text)
			var err error
			for err == nil && d.Next() {
				err = app.engine(d, withEcho())
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := throughJSON(t, app)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// throughJSON is the settings of an app's engines after a way through JSON.
func throughJSON(t *testing.T, app *App) (map[string]node.EngineSettings, error) {
	t.Helper()
	text, err := json.Marshal(app)
	read := new(App)
	if err == nil {
		err = json.Unmarshal(text, read)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = read.engines(withEcho(), func(s string) string { return s })
	return read.settings.Engines, err
}

func TestApp_EnginesInJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engines map[string]*Engine
		err     string
	}{
		"one that isn't":       {map[string]*Engine{"mlx": {}}, `engine: "mlx" is not one of: llama_server, mlx_lm, echo`},
		"an option that isn't": {map[string]*Engine{"llama_server": {Options: map[string][]string{"greeting": {"/a"}}}}, `engine llama_server: there is no option "greeting"`},
		"a wrong value":        {map[string]*Engine{"echo": {Options: map[string][]string{"greeting": nil}}}, "engine echo: greeting: give one text"},
		"a path and a command": {map[string]*Engine{"mlx_lm": {Path: "/a", Command: []string{"/a"}}}, `engine mlx_lm: "path" and "command" both name the executable: leave one of them out`},
		"a command":            {map[string]*Engine{"llama_server": {Command: []string{"/a"}}}, `engine llama_server: there is no option "command": set "path" to the executable`},
		"nothing of one":       {map[string]*Engine{"llama_server": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := throughJSON(t, &App{Engines: tt.engines})
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
