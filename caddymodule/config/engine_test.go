package config

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestEngines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want map[string]node.EngineSettings
		err  string
	}{
		"both": {
			"engine mlx_lm\nengine llama_server {\nsandbox off\n}", map[string]node.EngineSettings{"mlx_lm": {}, "llama_server": {Sandbox: schedule.Off}}, "",
		},
		"an option that isn't": {"engine mlx_lm {\ngreetings /a\n}", nil, `engine mlx_lm: unknown option "greetings"; there are: args, command, parallel, path, sandbox, sandbox_read, at Testfile:3`},
		"an engine that isn't": {"engine mlx", nil, `engine: "mlx" is not one of: llama_server, mlx_lm, at Testfile:2`},
		"an engine of no name": {`engine ""`, nil, `engine: "" is not one of: llama_server, mlx_lm, at Testfile:2`},
		"no engine":            {"engine", nil, "wrong argument count"},
		"more than its name":   {"engine mlx_lm 1", nil, "wrong argument count"},
		"a command": {
			"engine mlx_lm {\ncommand python3 -m mlx_lm server\nsandbox off\nargs --log-level DEBUG\n}",
			map[string]node.EngineSettings{"mlx_lm": {Command: []string{"python3", "-m", "mlx_lm", "server"}, Sandbox: schedule.Off, Args: []string{"--log-level", "DEBUG"}}},
			"",
		},
		"a later command":       {"engine mlx_lm {\ncommand a b\n}\nengine mlx_lm {\ncommand c\n}", map[string]node.EngineSettings{"mlx_lm": {Command: []string{"c"}}}, ""},
		"no command":            {"engine mlx_lm {\ncommand\n}", nil, "wrong argument count"},
		"an empty command":      {"engine mlx_lm {\ncommand \"\"\n}", nil, "engine mlx_lm: command: the first word must be the executable, at Testfile:3"},
		"a path as a command":   {"engine mlx_lm {\npath /a\n}", map[string]node.EngineSettings{"mlx_lm": {Path: "/a", Command: []string{"/a"}}}, ""},
		"a path and a command":  {"engine mlx_lm {\npath /a\ncommand b\n}", nil, `engine mlx_lm: "path" and "command" both name the executable: leave one of them out, at Testfile:4`},
		"a command of a path":   {"engine llama_server {\ncommand a\n}", nil, `engine llama_server: there is no option "command": set "path" to the executable, at Testfile:3`},
		"a sandbox":             {"engine mlx_lm {\nsandbox on\n}", nil, "engine mlx_lm: it can't run in the sandbox, because Python and whatever else its command starts need files and programs that the sandbox can't know: leave out \"sandbox on\" and \"sandbox_read\", at Testfile:3"},
		"a hole in a sandbox":   {"engine mlx_lm {\nsandbox_read /a\n}", nil, "engine mlx_lm: it can't run in the sandbox"},
		"two blocks of the one": {"engine mlx_lm {\nargs 1\n}\nengine mlx_lm {\nargs 2\n}", map[string]node.EngineSettings{"mlx_lm": {Args: []string{"1", "2"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := new(Settings)
			err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("lm {\n" + tt.text + "\n}"))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := throughJSON(t, s)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// throughJSON is the settings of the engines after a way through JSON.
func throughJSON(t *testing.T, s *Settings) (map[string]node.EngineSettings, error) {
	t.Helper()
	text, err := json.Marshal(s)
	read := new(Settings)
	if err == nil {
		err = json.Unmarshal(text, read)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := option.Check(read); err != nil {
		return nil, err
	}
	got, err := read.NodeSettings(slog.New(slog.DiscardHandler), caddy.NewReplacer())
	return got.Engines, err
}

func TestEngines_InJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engines map[string]*Engine
		err     string
	}{
		"one that isn't":       {map[string]*Engine{"mlx": {}}, `engine: "mlx" is not one of: llama_server, mlx_lm`},
		"a path and a command": {map[string]*Engine{"mlx_lm": {Path: "/a", Command: []string{"/a"}}}, `engine mlx_lm: "path" and "command" both name the executable: leave one of them out`},
		"a command":            {map[string]*Engine{"llama_server": {Command: []string{"/a"}}}, `engine llama_server: there is no option "command": set "path" to the executable`},
		"nothing of one":       {map[string]*Engine{"llama_server": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := throughJSON(t, &Settings{Engines: tt.engines})
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
