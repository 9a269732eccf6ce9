package caddymodule

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// withToy are the engines that there are, and one that has an option of its own.
func withToy() []node.Engine {
	adapter := func(values []string) ([]string, error) {
		if len(values) != 1 {
			return nil, errors.New("name one adapter")
		}
		return []string{"--adapter-path", values[0]}, nil
	}
	words := map[string]func([]string) ([]string, error){"adapter": adapter}
	return append(node.Engines(), node.Engine{Engine: supervisor.Engine{Name: "toy_server", Words: words}})
}

func TestApp_Engine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want map[string]node.EngineSettings
		err  string
	}{
		"an option of its own": {
			"engine toy_server {\nargs --x\nadapter /a\nparallel 2\n}", map[string]node.EngineSettings{"toy_server": {Parallel: 2, Args: []string{"--adapter-path", "/a", "--x"}}}, "",
		},
		"both": {
			"engine toy_server\nengine llama_server {\nsandbox off\n}", map[string]node.EngineSettings{"toy_server": {}, "llama_server": {Unconfined: true}}, "",
		},
		"a wrong value":         {"engine toy_server {\nadapter\n}", nil, "name one adapter, at Testfile:2"},
		"another's option":      {"engine llama_server {\nadapter /a\n}", nil, `engine llama_server: unknown option "adapter"; there are: args, parallel, path, sandbox, sandbox_read, at Testfile:2`},
		"an option that isn't":  {"engine toy_server {\nadopter /a\n}", nil, `engine toy_server: unknown option "adopter"; there are: adapter, args, parallel, path, sandbox, sandbox_read, at Testfile:2`},
		"an engine that isn't":  {"engine mlx", nil, `engine: "mlx" is not one of: llama_server, toy_server, at Testfile:1`},
		"an engine of no name":  {`engine ""`, nil, `engine: "" is not one of: llama_server, toy_server, at Testfile:1`},
		"no engine":             {"engine", nil, "wrong argument count"},
		"more than its name":    {"engine toy_server 1", nil, "wrong argument count"},
		"two blocks of the one": {"engine toy_server {\nargs 1\n}\nengine toy_server {\nargs 2\n}", map[string]node.EngineSettings{"toy_server": {Args: []string{"1", "2"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := new(App)
			d := caddyfile.NewTestDispenser(tt.text)
			var err error
			for err == nil && d.Next() {
				err = app.engine(d, withToy())
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
	err = read.engines(withToy(), func(s string) string { return s })
	return read.settings.Engines, err
}

func TestApp_EnginesInJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engines map[string]*Engine
		err     string
	}{
		"one that isn't":       {map[string]*Engine{"mlx": {}}, `engine: "mlx" is not one of: llama_server, toy_server`},
		"an option that isn't": {map[string]*Engine{"llama_server": {Options: map[string][]string{"adapter": {"/a"}}}}, `engine llama_server: there is no option "adapter"`},
		"a wrong value":        {map[string]*Engine{"toy_server": {Options: map[string][]string{"adapter": nil}}}, "engine toy_server: adapter: name one adapter"},
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
