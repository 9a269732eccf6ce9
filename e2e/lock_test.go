package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestLock_SecondServerOnTheSameHomeRefusesToStart(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t)}
	first := harness.Start(home, config)
	first.Chat(harness.Ask(capital))
	engine := first.Engine()

	other := harness.Config{Port: harness.FreePort(t)}
	second := home.WriteFile("Second", other.String())
	alias := filepath.Join(home.Work, "alias") // the same folder by another name
	if err := os.Symlink(home.Dir, alias); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"run":             {"run", "--config", second, "--adapter", "caddyfile"},
		"run on an alias": {"run", "--adapter", "caddyfile", "--config", home.WriteFile("Alias", strings.ReplaceAll(other.String(), "{$LMCADDY_HOME}", alias))},
		"serve":           {"serve", "--listen", harness.Address(other.Port)},
		"run on its port": {"run", "--config", home.WriteFile("Caddyfile", config.String())},
		"a bare run":      {"run"}, // with the Caddyfile in the folder, which is the first server's
		"run with flags":  {"run", "--environ", "--config", second, "--adapter", "caddyfile"},
	} {
		t.Run(name, func(t *testing.T) {
			r := home.In(t).Command(args...)
			if r.Status == 0 {
				t.Errorf("status 0: %s", r.Output)
			}
			holder := strconv.Itoa(first.PID)
			if named := strings.Contains(r.Output, home.Dir) || strings.Contains(r.Output, alias); !named || !strings.Contains(r.Output, holder) {
				t.Errorf("the home %s and the process %s are to be named: %s", home.Dir, holder, r.Output)
			}
			if a := first.In(t).Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("the first answers %q", a.Content)
			}
			if now := first.In(t).Engine(); now.PID != engine.PID {
				t.Errorf("the first's engine was process %d, and is %d", engine.PID, now.PID)
			}
		})
	}

	config.LM = []string{"reasoning_field reasoning_content"}
	if r := first.Reload(config.String()); r.Status != 0 {
		t.Errorf("the first's admin endpoint is gone: %s", r.Output)
	}
	if message := first.Post(harness.ChatPath, harness.Ask(capital)).Get("choices.0.message"); message.Get("reasoning_content").Str == "" {
		t.Errorf("the reload didn't reach the first: %s", message.Raw)
	}
}

// Even if the configuration can't be read before Caddy reads it, a second server must not take over the admin socket.
func TestLock_SecondServerThatIsConfiguredOnStandardInputRefusesToStart(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t)}
	first := harness.Start(home, config)

	other := harness.Config{Port: harness.FreePort(t)}
	r := home.CommandWithInput(other.String(), "run", "--config", "-", "--adapter", "caddyfile")
	if holder := strconv.Itoa(first.PID); r.Status == 0 || !strings.Contains(r.Output, home.Dir) || !strings.Contains(r.Output, holder) {
		t.Errorf("status %d; the home %s and the process %s are to be named: %s", r.Status, home.Dir, holder, r.Output)
	}
	config.LM = []string{"list_models all"}
	if r := first.Reload(config.String()); r.Status != 0 {
		t.Errorf("the first's admin endpoint is gone: %s", r.Output)
	}
	if a := first.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("the first answers %q", a.Content)
	}
}

// Of two servers that start at once, one serves completely, and the other changes nothing.
func TestLock_TwoStartsAtOnce(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	for range 20 {
		var both [2]*harness.Server
		for i := range both {
			config := harness.Config{Port: harness.FreePort(t)}
			both[i] = home.Begin(config.Port, "run", "--adapter", "caddyfile", "--config", home.WriteFile("Caddyfile"+strconv.Itoa(i), config.String()))
		}
		harness.Eventually(t, harness.Patience, "one of them refuses to start", func() bool { return both[0].HasEnded() || both[1].HasEnded() })
		winner, loser := both[0], both[1]
		if winner.HasEnded() {
			winner, loser = loser, winner
		}
		if status := loser.WaitEnd(harness.Patience); status == 0 || !strings.Contains(loser.Log(), "in use by another lmcaddy") {
			t.Errorf("status %d: %s", status, loser.Log())
		}
		for name, url := range map[string]string{"admin.sock": "http://localhost/config/", "lmcaddy.sock": "http://lmcaddy/v1/models"} {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(home.Dir, "run", name))
			}}}
			harness.Eventually(t, harness.Patience, name+" answers", func() bool {
				if winner.HasEnded() {
					t.Fatalf("both have ended: %s", winner.Log())
				}
				resp, err := client.Get(url)
				if err != nil {
					return false
				}
				_ = resp.Body.Close()
				return resp.StatusCode == http.StatusOK
			})
		}
		if status := winner.Stop(syscall.SIGINT, harness.Patience); status != 0 {
			t.Errorf("the winner ended with status %d", status)
		}
	}
}
