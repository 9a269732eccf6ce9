package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// clusterNode is the Caddyfile of a node: the database, its name, further options, its port, and whether it asks for tokens.
const clusterNode = `{
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	grace_period 5s
	lm {
		store postgres %q
		cluster http://%s
		%s
		engine llama_server {
			args --threads 1
		}
	}
}

http://:%d {
	bind %s
	%s
	lm_api
}
`

// node is a server of a cluster.
type node struct {
	*harness.Server
	port int
}

// name is its name in the cluster, the address where the others reach it.
func (n *node) name() string { return nodeName(n.Home, n.port) }

func nodeName(h *harness.Home, port int) string {
	if h.Net != nil {
		return fmt.Sprintf("%s:%d", h.Net.Address, port)
	}
	return harness.Address(port)
}

// launchNode starts a node in a home, with further lines of the option lm.
func launchNode(h *harness.Home, port int, database *harness.Database, auth string, more ...string) *node {
	bind := "127.0.0.1"
	if h.Net != nil {
		bind += " " + h.Net.Address
	}
	return &node{h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(clusterNode, database.URL, nodeName(h, port), strings.Join(more, "\n"), port, bind, auth))), port}
}

// newCluster starts nodes with the shipped model, that have found each other.
func newCluster(t *testing.T, number int, auth string) (nodes []*node, database *harness.Database) {
	t.Helper()
	database = harness.StartPostgres(t, nil)
	for range number {
		nodes = append(nodes, launchNode(harness.NewHome(t), harness.FreePort(t), database, auth))
	}
	awaitNodes(t, nodes)
	return nodes, database
}

// awaitNodes waits until each node has reached all others.
func awaitNodes(t *testing.T, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		harness.Eventually(t, harness.Patience, "the nodes have found each other", func() bool {
			return strings.Count(n.Command("ps").Output, ": connected") == len(nodes)
		})
	}
}

// loadedOn returns the nodes that have loaded the shipped model, as each says of itself.
func loadedOn(nodes []*node) (on []*node) {
	for _, n := range nodes {
		if len(n.Engines()) > 0 {
			on = append(on, n)
		}
	}
	return on
}

// A model is loaded once, whichever node is asked first, and all of them serve it.
func TestCluster_AnyNodeServesEveryModel(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 3, "")
	for range 2 {
		for _, n := range nodes {
			if text := n.Chat(harness.Ask("What is the capital of France?")).Content; !strings.Contains(text, "Paris") {
				t.Errorf("%s: %q", n.name(), text)
			}
		}
	}
	on := loadedOn(nodes)
	if len(on) != 1 {
		t.Fatalf("%d nodes have loaded the model", len(on))
	}
	for _, n := range nodes {
		all := n.Get("/api/v1/ps").Want(t, http.StatusOK)
		self := all.Get(`nodes.#(self==true).name`).Str
		if len(all.Get("nodes").Array()) != 3 || self != n.name() || all.Get("remotes").Exists() {
			t.Errorf("%s", all.Body)
		}
	}
	if got := on[0].Get("/api/v1/models").Get("models.0.places.#").Int(); got != 2 {
		t.Errorf("the model has %d further places", got)
	}
}

// A conversation that begins on one node goes on on every other, also when the one that began it is gone.
func TestCluster_ConversationsOutliveTheirNode(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 3, "")
	first := nodes[0].NativeChat(harness.NativeAsk("My name is Ada."))
	id := first.Get("response_id").Str
	second := nodes[1].NativeChat(harness.NativeAsk("What is my name?").After(id))
	if text := harness.NativeText(second, "message"); !strings.Contains(text, "Ada") {
		t.Errorf("%q", text)
	}
	nodes[0].Kill()
	for _, n := range nodes[1:] {
		third := n.NativeChat(harness.NativeAsk("What is my name?").After(id))
		if text := harness.NativeText(third, "message"); !strings.Contains(text, "Ada") {
			t.Errorf("%s: %q", n.name(), text)
		}
	}
}

// Requests to a node whose engine is on another go on when that is killed, as long as nothing of their answer was seen.
func TestCluster_ANodeIsKilled(t *testing.T) {
	t.Parallel()
	nodes, database := newCluster(t, 2, "")
	nodes[0].Chat(harness.Ask("Hello"))
	on := loadedOn(nodes)
	if len(on) != 1 {
		t.Fatalf("%d nodes have loaded the model", len(on))
	}
	there, door := on[0], nodes[0]
	if door == there {
		door = nodes[1]
	}
	home, port := there.Home, there.port
	there.Kill()
	begun := time.Now()
	if text := door.Chat(harness.Ask("What is the capital of France?")).Content; !strings.Contains(text, "Paris") {
		t.Errorf("%q", text)
	}
	t.Logf("answered %s after the node was killed", time.Since(begun))
	harness.Eventually(t, harness.Patience, "the node is listed as unreachable", func() bool { return nodeStatus(door, there) == "unreachable" })
	again := launchNode(home, port, database, "")
	awaitNodes(t, []*node{door, again})
	if text := again.Chat(harness.Ask("What is the capital of France?")).Content; !strings.Contains(text, "Paris") {
		t.Errorf("%q", text)
	}
}

// A node that is shutting down gets no more requests, and leaves the list.
func TestCluster_ANodeLeaves(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "")
	nodes[1].Stop(syscall.SIGINT, harness.Patience)
	harness.Eventually(t, harness.Patience, "the node is no longer listed", func() bool {
		return nodes[0].Get("/api/v1/ps").Get("nodes.#").Int() == 1
	})
	nodes[0].Chat(harness.Ask("Hello"))
}

// Tokens are for all nodes, and so are their limits.
func TestCluster_LimitsHoldOverAllNodes(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 3, "lm_auth")
	token := created(t, nodes[0].Home, "--name", "limited", "--requests-per-minute", "20")
	wantLimited(t, nodes, token)
}

// What one token may use of a day holds over all nodes.
func TestCluster_TokensPerDayHoldOverAllNodes(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 3, "lm_auth")
	const limit = 2000
	token := created(t, nodes[0].Home, "--name", "limited", "--tokens-per-day", fmt.Sprint(limit))
	wantDayLimited(t, nodes, token, limit)
}

// wantDayLimited fails the test unless about as many tokens can be used as the token's limit permits in a day.
func wantDayLimited(t *testing.T, nodes []*node, token string, limit int64) {
	t.Helper()
	used := int64(0)
	for i := range 200 {
		reply := nodes[i%len(nodes)].As(token).Post("/v1/chat/completions", harness.Ask("Count to 30.").With("max_tokens", 30))
		if reply.Status == http.StatusTooManyRequests {
			break
		}
		used += reply.Want(t, http.StatusOK).Get("usage.total_tokens").Int()
	}
	if used < limit*95/100 || used > limit*105/100 {
		t.Errorf("%d tokens were used of %d", used, limit)
	}
}

// The keys of nodes open nothing else, and no client is told of them.
func TestCluster_NobodyElseIsANode(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "lm_auth")
	for _, key := range []string{"lm-node-", "lm-node-AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		reply := nodes[0].As(key).Get("/v1/models")
		if reply.Want(t, http.StatusUnauthorized); !strings.Contains(reply.Body, "node") {
			t.Error(reply.Body)
		}
	}
	admin := created(t, nodes[0].Home, "--name", "admin", "--scopes", "admin")
	for _, path := range []string{"/api/v1/ps", "/api/v1/settings", "/api/v1/models", "/api/v1/logs"} {
		reply := nodes[0].As(admin).Get(path).Want(t, http.StatusOK)
		if strings.Contains(reply.Body, "lm-node-") {
			t.Errorf("%s has a key", path)
		}
	}
	for _, n := range nodes {
		if strings.Contains(n.Log(), "lm-node-") {
			t.Errorf("the log of %s has a key", n.name())
		}
	}
}

// While the database is away, tokens that were seen work on, and what needs the store says so.
func TestCluster_TheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	nodes, database := newCluster(t, 2, "lm_auth")
	token := created(t, nodes[0].Home, "--name", "known", "--requests-per-minute", "1000", "--tokens-per-day", "100000")
	ask := harness.Ask("Hello").With("max_tokens", 2)
	for _, n := range nodes {
		n.As(token).Post("/v1/chat/completions", ask).Want(t, http.StatusOK)
	}
	database.Kill()
	for range 3 {
		for _, n := range nodes {
			n.As(token).Post("/v1/chat/completions", ask).Want(t, http.StatusOK)
		}
	}
	reply := nodes[0].As(token).Post("/api/v1/chat", harness.NativeAsk("Hello").After("resp_000000000000000000000000000000000000000000000000"))
	reply.Want(t, http.StatusServiceUnavailable)
}

// A cluster needs a store that its nodes share.
func TestCluster_NeedsPostgreSQL(t *testing.T) {
	t.Parallel()
	h := harness.NewBareHome(t)
	file := h.WriteFile("Caddyfile", "{\n\tlm {\n\t\tcluster http://127.0.0.1:1\n\t}\n}\n")
	wantFailed(t, h.Command("run", "--config", file), "store postgres")
}

// What is loaded on a node can be unloaded and loaded through every other.
func TestCluster_ModelsAreManagedFromEveryNode(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "")
	there := nodes[1].name() + "/" + harness.Model
	nodes[0].Post("/api/v1/models/load", harness.Fields{"model": there}).Want(t, http.StatusOK)
	if on := loadedOn(nodes); len(on) != 1 || on[0] != nodes[1] {
		t.Fatalf("%d nodes have loaded the model", len(on))
	}
	for _, pinned := range []bool{true, false} {
		nodes[0].Post("/api/v1/models/pin", harness.Fields{"instance_id": there, "pinned": pinned}).Want(t, http.StatusOK)
		for _, n := range nodes {
			if got := n.Get("/api/v1/ps").Get("instances.0.pinned"); !got.Exists() || got.Bool() != pinned {
				t.Errorf("%s: pinned is %s, want %t", n.name(), got.Raw, pinned)
			}
		}
	}
	nodes[0].Post("/api/v1/models/unload", harness.Fields{"instance_id": there}).Want(t, http.StatusOK)
	nodes[1].WaitNoEngine(harness.Patience)
	nodes[0].Post("/api/v1/models/load", harness.Fields{"model": there, "pinned": true}).Want(t, http.StatusOK)
	for _, n := range nodes {
		if got := n.Get("/api/v1/ps").Get("instances.0.pinned").Bool(); !got {
			t.Errorf("%s: what was loaded with it isn't pinned", n.name())
		}
	}
}

// A keep_alive of 0 has the model unloaded after the answer, also on another node.
func TestCluster_KeepAliveReachesTheNode(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "")
	there := nodes[1].name() + "/" + harness.Model
	ask := harness.Fields{"model": there, "messages": []harness.Fields{{"role": "user", "content": "Hello"}}, "stream": false}
	nodes[0].Post("/api/chat", ask).Want(t, http.StatusOK) // by a request, not by hand
	if on := loadedOn(nodes); len(on) != 1 || on[0] != nodes[1] {
		t.Fatalf("%d nodes have loaded the model", len(on))
	}
	nodes[0].Post("/api/chat", ask.With("keep_alive", 0)).Want(t, http.StatusOK)
	nodes[1].WaitNoEngine(harness.Patience)
}

// How long a request keeps the model loaded that it has loaded counts on the node that loads it.
func TestCluster_TimeToLiveReachesTheNode(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "")
	ask := harness.Ask("Hello").With("max_tokens", 2).With("model", nodes[1].name()+"/"+harness.Model)
	nodes[0].Post("/v1/chat/completions", ask.With("ttl", 1)).Want(t, http.StatusOK)
	if on := loadedOn(nodes); len(on) == 1 && on[0] != nodes[1] {
		t.Fatal("the wrong node has loaded the model")
	}
	nodes[1].WaitNoEngine(harness.Patience)
}

// Growing conversations find as much of what was processed before on two nodes, whichever is asked, as on one of them alone. On one with the
// slots of both they may find more, since a hash decides where each is: of six, one node has five or six in a fifth of the cases.
func TestCluster_ConversationsStayWarm(t *testing.T) {
	t.Parallel()
	nodes, _ := newCluster(t, 2, "")
	for _, n := range nodes { // both have the model
		n.Command("load", harness.Model)
	}
	harness.Eventually(t, harness.Patience, "both know that", func() bool {
		for _, n := range nodes {
			if n.Get("/api/v1/ps").Get("nodes.#(loaded==1)#.name").Get("#").Int() != 2 {
				return false
			}
		}
		return true
	})
	alone, _ := newCluster(t, 1, "")
	two, one := reuse(nodes), reuse(alone)
	t.Logf("%.3f of the tokens were cached on two nodes, %.3f on one", two, one)
	if two < one*0.95 || one < 0.3 {
		t.Errorf("%.3f of the tokens were cached on two nodes, %.3f on one", two, one)
	}
}

// reuse has six conversations, each turn of which goes to another node, and returns how much of their prompts, after the first, was cached.
func reuse(nodes []*node) float64 {
	const talks = 6
	var messages [talks][]map[string]string
	cached, prompt := int64(0), int64(0)
	for turn := range 5 {
		for talk := range talks { // they take turns, as if they were of six users
			all := &messages[talk]
			if turn == 0 {
				*all = []map[string]string{{"role": "system", "content": strings.Repeat("You are kind. ", 20)}}
			}
			*all = append(*all, map[string]string{"role": "user", "content": fmt.Sprintf("This is talk %d, turn %d. Hello", talk, turn)})
			n := nodes[(talk+turn)%len(nodes)]
			reply := n.Post("/v1/chat/completions", harness.Fields{"model": harness.Model, "messages": *all, "max_tokens": 8, "temperature": 0}).Want(n.T, http.StatusOK)
			*all = append(*all, map[string]string{"role": "assistant", "content": reply.Get("choices.0.message.content").Str})
			if turn > 0 {
				cached += reply.Get("usage.prompt_tokens_details.cached_tokens").Int()
				prompt += reply.Get("usage.prompt_tokens").Int()
			}
		}
	}
	return float64(cached) / float64(prompt)
}
