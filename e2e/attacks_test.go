package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestAttacks: what others of the machine, clients without a token, and names of models try against those who run a server.
func TestAttacks(t *testing.T) {
	t.Parallel()
	const hostileName = "acme/\x1b[2Jred\u202eriver"
	h := harness.NewHome(t)
	h.AddModel(hostileName, "hostile.gguf", harness.ShippedModel(t))
	if err := os.Chmod(h.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	config := strings.Replace(harness.Config{Site: []string{"lm_auth"}}.String(), "\tlm_api {", "\tmetrics /metrics\n\tlm_api {", 1)
	s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", strings.Replace(config, "http://:0 ", "http://"+harness.Address(port)+" ", 1)))
	for name, attack := range map[string]func(t *testing.T){
		"a home that others can enter": func(t *testing.T) {
			if info, err := os.Stat(h.Dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		},
		"metrics without a token": func(t *testing.T) {
			s.In(t).Get("/metrics").Want(t, http.StatusUnauthorized)
		},
		"a name for the terminal": func(t *testing.T) {
			for _, command := range [][]string{{"ls"}, {"ls", "--all"}, {"show", hostileName}, {"chat", hostileName, "-p", "Hi"}, {"load", hostileName}, {"rm", hostileName}} {
				printed := h.Command(command...).Output
				if at := strings.IndexFunc(printed, func(r rune) bool { return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == '\u202e') }); at >= 0 || printed == "" {
					t.Errorf("%q prints %q", command, printed)
				}
			}
		},
		"a secret in a URL": func(t *testing.T) {
			const secret = "sk-lm-aaaaaaaa:bbbbbbbbbbbbbbbbbbbb"
			s.In(t).Get("/api/v1/models?api_key="+secret).Want(t, http.StatusUnauthorized)
			s.In(t).Get("/api/v1/no-such-path?token=" + secret)
			if strings.Contains(s.Log(), secret) {
				t.Errorf("the log has it: %s", s.Log())
			}
		},
	} {
		t.Run(name, attack)
	}
}
