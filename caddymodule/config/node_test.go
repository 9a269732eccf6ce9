package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// TestHubs_TheConfigurationGoesBeforeTheEnvironment, and placeholders are replaced at the start alone.
func TestHubs_TheConfigurationGoesBeforeTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		hubs            []Hub
		endpoint, token string
		want            []hub.Config
		fails           string
	}{
		"nothing is said":    {want: []hub.Config{{URL: hub.PublicHub}}},
		"a token":            {token: "hf_1", want: []hub.Config{{URL: hub.PublicHub, Token: "hf_1"}}},
		"a mirror":           {endpoint: "https://mirror.example", token: "hf_1", want: []hub.Config{{URL: "https://mirror.example", Token: "hf_1", Mirror: true}}},
		"a mirror over http": {endpoint: "http://mirror.example", fails: "HF_ENDPOINT"},
		"configured": {
			hubs: []Hub{{URL: "https://{env.TEST_HUB}", Token: "{env.TEST_TOKEN}", StallTimeout: caddy.Duration(time.Second)}, {URL: hub.PublicHub}}, endpoint: "https://mirror.example", token: "hf_1",
			want: []hub.Config{{URL: "https://hub.example", Token: "s3cret", Stall: time.Second}, {URL: hub.PublicHub, Stall: time.Minute}},
		},
		"a token that is empty":       {hubs: []Hub{{URL: hub.PublicHub, Token: "{env.TEST_NONE}"}}, want: []hub.Config{{URL: hub.PublicHub, Stall: time.Minute}}},
		"an address that is empty":    {hubs: []Hub{{URL: "{env.TEST_NONE}"}}, fails: "hub {env.TEST_NONE}"},
		"a placeholder that is wrong": {hubs: []Hub{{URL: hub.PublicHub, Token: "{envy.X}"}}, fails: "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HF_ENDPOINT", c.endpoint)
			t.Setenv("HF_TOKEN", c.token)
			t.Setenv("TEST_HUB", "hub.example")
			t.Setenv("TEST_TOKEN", "s3cret")
			t.Setenv("TEST_NONE", "")
			var log bytes.Buffer
			got, err := (&Settings{Hubs: c.hubs}).NodeSettings(slog.New(slog.NewTextHandler(&log, nil)), caddy.NewReplacer())
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Hubs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(log.String(), "s3cret") {
				t.Errorf("the log has the token: %s", log.String())
			}
		})
	}
}

func TestStore_NodeSettings(t *testing.T) {
	t.Setenv("TEST_STORE", "postgres://db")
	s := &Settings{Store: Store{PostgresURL: "{env.TEST_STORE}", MaxAge: caddy.Duration(time.Hour), MaxTurns: 5}}
	replace := caddy.NewReplacer()
	err := s.Resolve(replace)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.NodeSettings(slog.New(slog.DiscardHandler), replace)
	if err != nil || got.Store.PostgresURL != "postgres://db" || got.Store.Bounds.Age != time.Hour || got.Store.Bounds.Number != 5 || got.Store.TokenGrace != 5*time.Minute {
		t.Errorf("%+v %v", got.Store, err)
	}
}
