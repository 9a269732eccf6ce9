package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The targets of the measurement of the cost of tokens: two sites of one server.
const (
	withoutToken = "without lm_auth"  //nolint:gosec // no credential
	withToken    = "lm_auth, a token" //nolint:gosec // no credential
)

// authCost is the maximum cost of a token, as a share of the requests per second.
const authCost = 0.05

// authentication measures the cost of lm_auth for a request, and reports whether our target was met.
func authentication(t testing.TB, w io.Writer, p plan) (verdicts []verdict) {
	targets := startAuth(t)
	printf(w, "\nAUTHENTICATION  (two sites of one server; %s; medians of %d rounds, each of %s)", small.name, p.rounds, p.lasting)
	printf(w, "%-18s%10s%9s%9s%9s   %s", "", "clients", "p50", "req/s", "CPU", "req/s to the other")
	for _, clients := range p.clients {
		all := map[string]series{}
		for round := range p.rounds {
			for i := range targets {
				t1 := targets[(i+round)%len(targets)]
				got, err := load{target: t1, work: small, clients: clients, requests: p.requests, lasting: p.lasting}.run()
				if err != nil {
					t.Fatalf("%s: %v", t1.name, err)
				}
				all[t1.name] = append(all[t1.name], figuresOf(got, small))
			}
		}
		without, with := all[withoutToken], all[withToken]
		for name, row := range map[string]series{withoutToken: without, withToken: with} {
			printf(w, "%-18s%10d%9s%9.0f%9s   %.3f", name, clients, seconds(row.median(p50)), row.median(rate), seconds(row.median(cpu)), row.ratio(without, rate))
		}
		verdicts = append(verdicts, atLeast(fmt.Sprintf("authentication, %d client(s): req/s to those without", clients), with.ratio(without, rate), 1-authCost))
	}
	return verdicts
}

func startAuth(t testing.TB) []target {
	home := harness.NewHome(t)
	plain, guarded := harness.FreePort(t), harness.FreePort(t)
	server := home.Launch(plain, "run", "--config", home.WriteFile("Caddyfile", fmt.Sprintf(`{
	grace_period 15s
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		engine llama_server {
			path %s
			parallel 8
			args --ctx-size 1048576
		}
	}
}

http://:%d {
	bind 127.0.0.1
	lm_api
}

http://:%d {
	bind 127.0.0.1
	lm_auth
	lm_api
}
`, linkSelf(t, home), plain, guarded)))
	server.Chat(harness.Ask("Hello").With("max_tokens", small.events)) // loads the model
	lines := strings.Fields(home.Command("token", "create", "--name", "bench").Output)
	token := lines[slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "sk-lm-") })]
	return []target{
		{name: withoutToken, address: harness.Address(plain), pid: server.PID},
		{name: withToken, address: harness.Address(guarded), pid: server.PID, token: token},
	}
}
