package node

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/node/cluster"
)

func TestSettings_ResolveTakesTheClosestAlias(t *testing.T) {
	t.Parallel()
	s := Settings{Models: map[string]ModelSettings{
		"p/any":   {Aliases: []string{"gpt-*"}},
		"p/four":  {Aliases: []string{"gpt-4*"}},
		"p/minis": {Aliases: []string{"*-mini"}},
		"p/exact": {Aliases: []string{"gpt-4o"}},
	}}
	for range 50 { // a map has no order
		for name, want := range map[string]string{
			"gpt-3": "p/any", "gpt-4.1": "p/four", "gpt-4o": "p/exact", "gpt-4-mini": "p/minis", "o1-mini": "p/minis", "p/any": "p/any", "claude": "claude",
		} {
			if got := s.resolve(name); got != want {
				t.Fatalf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

func TestCluster_Settings(t *testing.T) {
	t.Parallel()
	postgres := StoreSettings{PostgresURL: "postgres://host/db"}
	for name, tt := range map[string]struct {
		s    Settings
		want string // empty: it is valid
	}{
		"none":              {Settings{}, ""},
		"with a store":      {Settings{Cluster: cluster.Settings{URL: "https://a:1"}, Store: postgres}, ""},
		"without one":       {Settings{Cluster: cluster.Settings{URL: "https://a:1"}}, "store postgres"},
		"no URL":            {Settings{Cluster: cluster.Settings{URL: "a:1"}, Store: postgres}, "http://"},
		"with a password":   {Settings{Cluster: cluster.Settings{URL: "https://u:p@a:1"}, Store: postgres}, "password"},
		"TLS without https": {Settings{Cluster: cluster.Settings{URL: "http://a:1", CA: "ca.pem"}, Store: postgres}, ""},
	} {
		if err := tt.s.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
