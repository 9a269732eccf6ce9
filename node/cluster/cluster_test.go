package cluster

import (
	"net/http"
	"testing"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

func TestPeer_NeedsTheKeyOfThisStart(t *testing.T) {
	t.Parallel()
	settings := Settings{URL: "https://a:1"}
	c := New(Options{Settings: func() (Settings, string) { return settings, "" }})
	header := func(node, owner string) http.Header {
		return http.Header{remote.NodeHeader: {node}, remote.OwnerHeader: {owner}}
	}
	who := c.Peer(c.key, header("b:1", "user%3Aann"))
	if who == nil || who.Owner != "user:ann" || !who.IsNode() || who.May(access.ScopeAdmin) || !who.May(access.ScopeInference) {
		t.Fatalf("%+v", who)
	}
	for name, got := range map[string]*access.Identity{
		"the key of another start": c.Peer(New(Options{}).key, header("b:1", "")),
		"no key":                   c.Peer("", header("b:1", "")),
		"no node":                  c.Peer(c.key, header("", "")),
		"a broken owner":           c.Peer(c.key, header("b:1", "%zz")),
	} {
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	settings = Settings{}
	if got := c.Peer(c.key, header("b:1", "")); got != nil {
		t.Errorf("without a cluster: %+v", got)
	}
	if !IsKey(c.key) || IsKey("sk-lm-abcdefgh:aaaaaaaaaaaaaaaaaaaa") {
		t.Error("keys of nodes and tokens are mistaken for each other")
	}
}
