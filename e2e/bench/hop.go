package bench

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The targets of the measurement of the way from one node of a cluster to another: the engine, its node, and a node without models.
const (
	atEngine = "the engine"
	atNode   = "its node"
	atDoor   = "another node"
)

// hopCost is the maximum of what a hop adds, as a multiple of what the engine's own node adds.
const hopCost = 1.5

// hops measures what a hop from one node of a cluster to another costs, and reports whether our target was met.
func hops(t testing.TB, w io.Writer, p plan) (verdicts []verdict) {
	targets := startCluster(t)
	printf(w, "\nHOP  (two nodes of a cluster, one of which has the model; %s; medians of %d rounds, each of %s)", small.name, p.rounds, p.lasting)
	printf(w, "%-18s%10s%9s%9s%9s", "", "clients", "p50", "p99", "req/s")
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
		for _, target := range targets {
			row := all[target.name]
			printf(w, "%-18s%10d%9s%9s%9.0f", target.name, clients, seconds(row.median(p50)), seconds(row.median(p99)), row.median(rate))
		}
		added := all[atDoor].added(all[atNode]) / all[atNode].added(all[atEngine])
		verdicts = append(verdicts, atMost(fmt.Sprintf("hop, %d client(s): what it adds to p50, to what its node adds", clients), added, hopCost))
	}
	return verdicts
}

// added is the median of what the rounds' p50 have more than those of other rounds.
func (s series) added(to series) float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = s[i].p50 - to[i].p50
	}
	return median(values)
}

// startCluster starts a node with the fake engine and one without models.
func startCluster(t testing.TB) []target {
	database := harness.Postgres(t)
	start := func(home *harness.Home) *harness.Server {
		port := harness.FreePort(t)
		return harness.Start(home, harness.Config{
			Port: port,
			LM:   []string{fmt.Sprintf("store postgres %q", database), "cluster http://" + harness.Address(port)},
			Engine: []string{
				"path " + linkSelf(t, home),
				"parallel 8",              // as many as clients
				"args --ctx-size 1048576", // as in startOurs
			},
		})
	}
	has, door := start(harness.NewHome(t)), start(harness.NewBareHome(t))
	has.Chat(harness.Ask("Hello").With("max_tokens", small.events)) // loads the model
	harness.Eventually(t, harness.Patience, "the other node knows that the model is loaded", func() bool {
		return door.Get("/api/v1/models").Get(`models.0.places.#(loaded==true)`).Exists()
	})
	engine := has.Engine()
	own := func(s *harness.Server) string { return s.Base[len("http://"):] }
	return []target{
		{name: atEngine, address: "127.0.0.1:" + engine.Args[slices.Index(engine.Args, "--port")+1]},
		{name: atNode, address: own(has), pid: has.PID, admin: has.RunFile("admin.sock")},
		{name: atDoor, address: own(door), pid: door.PID, admin: door.RunFile("admin.sock")},
	}
}
