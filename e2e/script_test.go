package e2e

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var updateScripts = flag.Bool("update-scripts", false, "write what the commands print into the scripts, where a cmp differs")

// TestScript runs the scripts in testdata/script: what a user types, and sees. Each has a home of its own, with the shipped model
// and the engine; its working folder is $WORK. Besides the commands of testscript, there are:
//
//	lmcaddy ARG...             runs the program; "! lmcaddy" if it has to fail
//	serve-home [FLAG...]       starts a server on the home, and waits until it serves at $URL (127.0.0.1, port $PORT);
//	                           it ends with the script. With --config FILE, it runs that Caddyfile, where {$PORT}, {$WORK}
//	                           and {$HUB} can be used; else the flags are those of serve
//	stop-home                  ends the server, as Ctrl-C does
//	home-ends                  waits for the end of a server that a command has told to end
//	fake-hub                   starts a hub of models that has acme/Tiny-GGUF (Q8_0), at $HUB
//	token-from FILE            sets $LM_API_TOKEN to the token in a file
//	until PATTERN ARG...       runs the program again and again, until its standard output matches
//	request METHOD PATH [FILE] sends a request to $URL, with a file as the body and with $LM_API_TOKEN, if it is set; standard
//	                           output is the answer. "! request": its status is 400 or above
//
// The variable MODEL is the key of the shipped model, model.gguf its file, and SHIPPED the folder of all shipped ones.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		UpdateScripts:      *updateScripts,
		Setup:              setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"lmcaddy": scriptLmcaddy, "serve-home": scriptServe, "stop-home": scriptStop, "home-ends": scriptEnds, "fake-hub": scriptHub, "until": scriptUntil,
			"request": scriptRequest, "token-from": scriptToken,
		},
	})
}

// script is what a running script has.
type script struct {
	home   *harness.Home
	port   int
	server *harness.Server // nil: none runs
}

// scriptKey is the key of the script among a testscript's values.
type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func setUpScript(env *testscript.Env) error {
	t := env.T().(testing.TB)
	s := &script{home: harness.NewHome(t), port: harness.FreePort(t)}
	bin := filepath.Join(filepath.Dir(s.home.Dir), "script")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(s.home.Program(), filepath.Join(bin, "lmcaddy")); err != nil { // for exec, which can run it in the background
		return err
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+s.home.Path)
	env.Setenv("HOME", s.home.User)
	env.Setenv("LMCADDY_HOME", s.home.Dir)
	env.Setenv("OMP_THREAD_LIMIT", "1")
	name, value, _ := strings.Cut(harness.SparesGarbage, "=")
	env.Setenv(name, value)
	env.Setenv("MODEL", harness.Model)
	shipped, err := filepath.Abs("../testdata/models/lmcaddy")
	if err != nil {
		return err
	}
	env.Setenv("SHIPPED", shipped)
	if err := os.WriteFile(filepath.Join(env.WorkDir, "model.gguf"), harness.ShippedModel(t), 0o600); err != nil {
		return err
	}
	env.Setenv("PORT", strconv.Itoa(s.port))
	env.Setenv("URL", "http://"+harness.Address(s.port))
	env.Values[scriptKey{}] = s
	return nil
}

func scriptLmcaddy(ts *testscript.TestScript, neg bool, args []string) {
	switch err := ts.Exec("lmcaddy", args...); {
	case err != nil && !neg:
		ts.Fatalf("lmcaddy %s: %v", strings.Join(args, " "), err)
	case err == nil && neg:
		ts.Fatalf("lmcaddy %s has to fail", strings.Join(args, " "))
	}
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || s.server != nil {
		ts.Fatalf(`serve-home can't be negated, and there is one server at a time; use "! lmcaddy serve"`)
	}
	s.home.Env = []string{"PORT=" + ts.Getenv("PORT"), "WORK=" + ts.Getenv("WORK"), "HUB=" + ts.Getenv("HUB")}
	command := append([]string{"serve", "--listen", harness.Address(s.port)}, args...)
	if len(args) == 2 && args[0] == "--config" {
		command = []string{"run", "--config", ts.MkAbs(args[1])}
	}
	s.server = s.home.Launch(s.port, command...)
}

func scriptStop(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || len(args) > 0 || s.server == nil {
		ts.Fatalf("stop-home takes no arguments, and ends the server of serve-home")
	}
	if status := s.server.Stop(syscall.SIGINT, harness.Patience); status != 0 {
		ts.Fatalf("the server ended with status %d:\n%s", status, s.server.Log())
	}
	s.server = nil
}

func scriptEnds(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || len(args) > 0 || s.server == nil {
		ts.Fatalf("home-ends takes no arguments, and waits for the server of serve-home")
	}
	if status := s.server.WaitEnd(harness.Patience); status != 0 {
		ts.Fatalf("the server ended with status %d:\n%s", status, s.server.Log())
	}
	s.server = nil
}

func scriptHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: fake-hub")
	}
	ts.Setenv("HUB", newHub(scriptOf(ts).home.T, 0).URL)
}

func scriptToken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: token-from FILE")
	}
	ts.Setenv("LM_API_TOKEN", strings.TrimSpace(ts.ReadFile(args[0])))
}

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN ARG...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	harness.Eventually(scriptOf(ts).home.T, harness.Patience, "lmcaddy "+strings.Join(args[1:], " ")+" prints "+args[0], func() bool {
		return ts.Exec("lmcaddy", args[1:]...) == nil && pattern.MatchString(ts.ReadFile("stdout"))
	})
}

func scriptRequest(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: request METHOD PATH [FILE]")
	}
	var body io.Reader
	if len(args) == 3 {
		body = strings.NewReader(ts.ReadFile(args[2]))
	}
	req, err := http.NewRequestWithContext(scriptOf(ts).home.T.Context(), args[0], ts.Getenv("URL")+args[1], body)
	ts.Check(err)
	if token := ts.Getenv("LM_API_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(answer)
	ts.Check(err)
	if failed := resp.StatusCode >= http.StatusBadRequest; failed != neg {
		ts.Fatalf("%s %s is answered with status %d: %s", args[0], args[1], resp.StatusCode, answer)
	}
}
