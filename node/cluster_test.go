package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

func TestCluster_Settings(t *testing.T) {
	t.Parallel()
	postgres := StoreSettings{PostgresURL: "postgres://host/db"}
	for name, tt := range map[string]struct {
		s    Settings
		want string // empty: it is valid
	}{
		"none":              {Settings{}, ""},
		"with a store":      {Settings{Cluster: ClusterSettings{URL: "https://a:1"}, Store: postgres}, ""},
		"without one":       {Settings{Cluster: ClusterSettings{URL: "https://a:1"}}, "store postgres"},
		"no URL":            {Settings{Cluster: ClusterSettings{URL: "a:1"}, Store: postgres}, "http://"},
		"with a password":   {Settings{Cluster: ClusterSettings{URL: "https://u:p@a:1"}, Store: postgres}, "password"},
		"TLS without https": {Settings{Cluster: ClusterSettings{URL: "http://a:1", TLS: remote.Config{Insecure: true}}, Store: postgres}, ""},
	} {
		if err := tt.s.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestPeer_NeedsTheKeyOfThisStart(t *testing.T) {
	t.Parallel()
	n := &Node{cluster: newCluster()}
	n.settings.Store(&Settings{Cluster: ClusterSettings{URL: "https://a:1"}})
	header := func(node, owner string) http.Header {
		return http.Header{remote.NodeHeader: {node}, remote.OwnerHeader: {owner}}
	}
	who := n.Peer(n.cluster.key, header("b:1", "user%3Aann"))
	if who == nil || who.Owner != "user:ann" || !who.IsNode() || who.May(access.ScopeAdmin) || !who.May(access.ScopeInference) {
		t.Fatalf("%+v", who)
	}
	for name, got := range map[string]*access.Identity{
		"the key of another start": n.Peer(newCluster().key, header("b:1", "")),
		"no key":                   n.Peer("", header("b:1", "")),
		"no node":                  n.Peer(n.cluster.key, header("", "")),
		"a broken owner":           n.Peer(n.cluster.key, header("b:1", "%zz")),
	} {
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for text, want := range map[string]time.Duration{"": -1, "1m30s": 90 * time.Second, "0s": 0, "-1s": -1, "90": -1} {
		got := PeerTTL(http.Header{remote.TTLHeader: {text}})
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("a ttl of %q: %v", text, got)
		}
	}
	n.settings.Store(&Settings{})
	if got := n.Peer(n.cluster.key, header("b:1", "")); got != nil {
		t.Errorf("without a cluster: %+v", got)
	}
	if !LooksLikePeerKey(n.cluster.key) || LooksLikePeerKey("sk-lm-abcdefgh:aaaaaaaaaaaaaaaaaaaa") {
		t.Error("keys of nodes and tokens are mistaken for each other")
	}
}
