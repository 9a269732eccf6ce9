package bench

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// peer is another program that serves models, as a proxy of the same engine. It is measured if it is installed: on PATH under its name, or where
// an environment variable says.
type peer struct {
	name     string
	variable string
	what     string
	path     string // of its endpoint; empty: chatPath
	// configure writes its configuration, and returns its arguments and environment.
	configure func(home *harness.Home, port int, upstream string) (args, environment []string)
}

var allPeers = []peer{
	{
		name: llamaSwap, variable: "LMCADDY_LLAMA_SWAP", what: "llama-swap as it is by default; its command for the model does nothing, and the model's proxy is the engine",
		configure: func(home *harness.Home, port int, upstream string) (args, environment []string) {
			file := home.WriteFile("llama-swap.yaml", fmt.Sprintf(`models:
  "%s":
    cmd: sleep infinity
    proxy: http://%s
`, harness.Model, upstream))
			return []string{"--config", file, "--listen", harness.Address(port)}, nil
		},
	},
	{
		name: olla, variable: "LMCADDY_OLLA", what: "Olla as it is by default, without its limits of requests",
		path: "/olla/openai" + chatPath,
		configure: func(home *harness.Home, port int, upstream string) (args, environment []string) {
			file := home.WriteFile("olla.yaml", fmt.Sprintf(`server:
  host: 127.0.0.1
  port: %d
  rate_limits:
    global_requests_per_minute: 0
    per_ip_requests_per_minute: 0
discovery:
  type: static
  static:
    endpoints:
      - url: http://%s
        name: engine
        type: openai-compatible
        priority: 100
`, port, upstream))
			return []string{"--config", file}, []string{"OLLA_FILE_OUTPUT=false"}
		},
	},
}

// startPeers starts the peers that are installed. What isn't is among the missing, with the reason.
func startPeers(t testing.TB) (all []target, missing []string) {
	for _, p := range allPeers {
		program, err := exec.LookPath(cmp.Or(os.Getenv(p.variable), p.name))
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s isn't on PATH, and %s doesn't say where it is", p.name, p.variable))
			continue
		}
		all = append(all, p.start(t, program, startEngine(t)))
	}
	return all, missing
}

// start starts the peer, which ends with the test.
func (p peer) start(t testing.TB, program, upstream string) target {
	home := harness.NewBareHome(t)
	port := harness.FreePort(t)
	said := filepath.Join(home.Work, p.name+".log")
	log, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args, environment := p.configure(home, port, upstream)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home.Work, log, log
	cmd.Env = append(environment, "PATH="+os.Getenv("PATH"), "HOME="+home.Work)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a signal has ended it
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	tg := target{name: p.name, what: p.what, address: harness.Address(port), path: p.path, pid: cmd.Process.Pid}
	harness.Eventually(t, harness.Patience, p.name+" answers", func() bool {
		select {
		case <-ended:
			content, _ := os.ReadFile(said)
			t.Fatalf("%s has ended:\n%s", p.name, content)
		default:
		}
		_, err := load{target: tg, work: small, clients: 1, requests: 1}.run()
		return err == nil
	})
	return tg
}
