package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// defaultPort is the port on which lmcaddy serves by default.
const defaultPort = 1234

// The Caddyfile of `make run`, with another port.
func TestCommand_TheShippedCaddyfileServes(t *testing.T) {
	shipped, err := os.ReadFile("../Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	home := harness.NewHome(t)
	port := harness.FreePort(t)
	here := strings.Replace(string(shipped), ":1234", ":"+strconv.Itoa(port), 1)
	s := home.Launch(port, "run", "--config", home.WriteFile("Caddyfile", here))
	harness.Eventually(t, harness.Patience, "the model is loaded by itself", func() bool { return len(s.IDs()) == 1 })
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	wantNowhere(t, s)
}

// wantNowhere checks that a client with a wrong base URL gets an error.
func wantNowhere(t *testing.T, s *harness.Server) {
	t.Helper()
	for _, path := range []string{"/index.html", "/chat/completions", "/v1"} {
		s.Get(path).Want(t, 404)
	}
}

func TestCommand_ServeNeedsNoCaddyfile(t *testing.T) {
	home := harness.NewHome(t)
	port := harness.FreePort(t)
	s := home.Launch(port, "serve", "--listen", harness.Address(port))
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	wantNowhere(t, s)
	wantStateAtHome(t, home)
}

func TestCommand_ServeTakesFurtherFoldersOfModels(t *testing.T) {
	t.Parallel()
	home, other := harness.NewHome(t), harness.NewHome(t)
	other.AddModel("Somebody/Further-GGUF", "further.gguf", harness.ShippedModel(t))
	port := harness.FreePort(t)
	s := home.Launch(port, "serve", "--listen", harness.Address(port), "--models-dir", filepath.Join(other.Dir, "models"))
	s.Get("/v1/models/somebody%2Ffurther").Want(t, 200)
}

// A plain run in a folder without a Caddyfile serves on the default port. If that port is in use, it says so, which also
// shows what it would serve on.
func TestCommand_BareRunServesOnTheDefaultPort(t *testing.T) {
	home := harness.NewHome(t)
	address := harness.Address(defaultPort)
	l, err := net.Listen("tcp", address)
	if err != nil {
		if r := home.Command("run"); r.Status == 0 || !strings.Contains(r.Output, address) {
			t.Errorf("status %d; %s is in use, and is to be named: %s", r.Status, address, r.Output)
		}
		return
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := home.Launch(defaultPort, "run")
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	wantStateAtHome(t, home)
}

func TestCommand_BareRunTakesTheCaddyfileOfTheFolder(t *testing.T) {
	home := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t)}
	home.WriteFile("Caddyfile", config.String())
	s := home.Launch(config.Port, "run")
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	wantStateAtHome(t, home)
}

// wantStateAtHome checks that all state is in the home, and nothing in the user's folder.
func wantStateAtHome(t *testing.T, home *harness.Home) {
	t.Helper()
	info, err := os.Stat(home.RunFile("lock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock: %v, %v", info, err)
	}
	info, err = os.Stat(home.RunFile("admin.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the admin socket: %v, %v", info, err)
	}
	if files := home.UserFiles(); len(files) > 0 {
		t.Errorf("in the user's folder: %v", files)
	}
}

func TestCommand_ServeRefusesAnAddressItCannotUse(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	for _, address := range []string{"nonsense", "127.0.0.1", "127.0.0.1:nonsense"} {
		if r := home.Command("serve", "--listen", address); r.Status == 0 || !strings.Contains(r.Output, address) && !strings.Contains(r.Output, "nonsense") {
			t.Errorf("--listen %s: status %d: %s", address, r.Status, r.Output)
		}
	}
}

func TestCommand_ValidateTellsGoodFromBad(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	good := harness.Config{Port: harness.FreePort(t)}
	validate := func(config string) harness.Result {
		return home.Command("validate", "--config", home.WriteFile("Caddyfile", config))
	}
	if r := validate(good.String()); r.Status != 0 {
		t.Errorf("a good one: %s", r.Output)
	}
	for name, bad := range map[string]harness.Config{
		"unknown word of lm":           {LM: []string{"nonsense"}},
		"unknown word of the engine":   {Engine: []string{"nonsense 4"}},
		"unknown word of lm_api":       {API: []string{"nonsense"}},
		"unknown word of a model":      {LM: []string{"model a/b {", "nonsense", "}"}},
		"wrong value":                  {LM: []string{"jit nonsense"}},
		"a number that is no number":   {Engine: []string{"parallel nonsense"}},
		"a size that is no size":       {API: []string{"max_body nonsense"}},
		"an engine that doesn't exist": {LM: []string{"engine nonsense {", "}"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad.Port = good.Port
			wantNamed(t, validate(bad.String()), bad.String(), "nonsense")
		})
	}
	if _, err := os.Stat(filepath.Join(home.Dir, "run")); !os.IsNotExist(err) {
		t.Errorf("validate has made the run folder: %v", err)
	}
}
