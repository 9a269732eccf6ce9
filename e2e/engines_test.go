package e2e

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// An engine runs the shipped model, under the same key and with the same answers as the others.
type engine struct {
	name    string // in a Caddyfile
	runtime string // in an answer of the v0 API
	format  string // of the model
	steps   string // a line of its block, by which a prompt is processed in steps of 64 tokens
	context int    // the context length of a load that asks for 1000 tokens
	home    func(testing.TB) *harness.Home
	command func() []string // what runs it; nil: it is found in the home
	program func() string   // says what that is

	// What it can't do. The test of its refusals has the errors.
	noSchemas    bool // answers in a form
	noBeginnings bool // answers that the request begins
	// noFirstSpace is true of one that leaves out the space at the beginning of a text.
	noFirstSpace bool
}

// engines is the table of all that are tested.
var engines = []engine{
	{
		name: "llama_server", runtime: "llama.cpp", format: "gguf", steps: "args -b 64", context: 1024,
		home: harness.NewHome, command: func() []string { return nil },
		program: func() string { return "a real llama-server" },
	},
	mlxLM,
}

var mlxLM = engine{
	name: "mlx_lm", runtime: "mlx-lm", format: "mlx", steps: "args --prefill-step-size 64", context: 1000,
	home: harness.NewMLXHome, command: harness.MLXCommand,
	noSchemas: true, noBeginnings: true, noFirstSpace: true,
	program: func() string {
		if harness.MLXIsReal() {
			return "a real mlx_lm.server, " + strings.Join(harness.MLXCommand(), " ")
		}
		return "a fake mlx_lm.server over a real llama-server"
	},
}

// first is a text as the engine begins an answer with it.
func (e engine) first(text string) string {
	if e.noFirstSpace {
		return strings.TrimPrefix(text, " ")
	}
	return text
}

// engineNames says what the tests run.
func engineNames() string {
	var all []string
	for _, e := range engines {
		all = append(all, e.program())
	}
	return strings.Join(all, "; ")
}

// eachEngine runs a test over each engine, with a server of its own.
func eachEngine(t *testing.T, c harness.Config, test func(*testing.T, *harness.Server)) {
	t.Helper()
	overEngines(t, func(t *testing.T, e engine) { test(t, e.start(t, c)) })
}

// overEngines runs a test over each engine.
func overEngines(t *testing.T, test func(*testing.T, engine)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

// start starts a server in a new home with the model.
func (e engine) start(t *testing.T, c harness.Config) *harness.Server {
	t.Helper()
	return harness.Start(e.home(t), e.with(c))
}

// with returns a configuration for this engine.
func (e engine) with(c harness.Config) harness.Config {
	c.MLX = e.command()
	return c
}
