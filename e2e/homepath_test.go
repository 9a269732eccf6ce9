package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The shipped Caddyfiles and the commands work with any path of the home.
func TestHome_AnyPathWillDo(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile("../Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a space", "ünïcødé 模型", `"q'u'o"te`, "100%41", "$HOME", "{env.HOME}", "{$HOME}", `back\slash`, "back`tick`", "#hash", "new\nline"} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			dir := filepath.Join(h.Work, name)
			if err := os.Rename(h.Dir, dir); err != nil {
				t.Fatal(err)
			}
			h.Dir = dir
			port := harness.FreePort(t)
			config := h.WriteFile("Caddyfile", strings.Replace(string(shipped), ":1234", ":"+strconv.Itoa(port), 1))
			s := h.Launch(port, "run", "--config", config)
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("it answers %q", a.Content)
			}
			wantDone(t, s.Command("reload", "--config", config))
			wantDone(t, s.Command("ps"), "lmcaddy/tinychat")
			wantDone(t, s.Command("status"), strconv.Itoa(port))
			created(t, h, "--name", "x")
			s.Stop(syscall.SIGINT, harness.Patience)
			s = h.Launch(port, "serve", "--listen", harness.Address(port))
			wantDone(t, s.Command("ps"))
		})
	}
	t.Run("but for one that no socket can have", func(t *testing.T) {
		h := harness.NewHome(t)
		h.Dir = filepath.Join(h.Work, "a|b")
		wantFailed(t, h.Command("run"), "LMCADDY_HOME")
	})
}
