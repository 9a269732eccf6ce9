package config

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/warm"
)

func TestWarm_Settings(t *testing.T) {
	t.Parallel()
	defaults := node.WarmSettings{Settings: warm.Settings{MaxAge: 7 * 24 * time.Hour}, SaveAfter: time.Minute, MinTokens: 512}
	with := func(change func(*node.WarmSettings)) node.WarmSettings {
		s := defaults
		change(&s)
		return s
	}
	for name, tt := range map[string]struct {
		warm Warm
		want node.WarmSettings
	}{
		"nothing":        {Warm{}, defaults},
		"off":            {Warm{Off: true}, with(func(s *node.WarmSettings) { s.Off = true })},
		"at any age":     {Warm{MaxAge: new(caddy.Duration)}, with(func(s *node.WarmSettings) { s.MaxAge = 0 })},
		"sizes":          {Warm{Size: 1}, with(func(s *node.WarmSettings) { s.Size = 1 })},
		"sooner, longer": {Warm{SaveAfter: 3, MinTokens: 4}, with(func(s *node.WarmSettings) { s.SaveAfter, s.MinTokens = 3, 4 })},
	} {
		got, err := (&Settings{Warm: tt.warm}).NodeSettings(slog.New(slog.DiscardHandler), caddy.NewReplacer())
		if diff := cmp.Diff(tt.want, got.Warm); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A configuration in JSON is checked like a Caddyfile.
func TestWarm_InJSON(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"off": true, "size": 1073741824}`: "no states are kept",
		`{"size": -1}`:                      "must not be negative",
		`{"max_age": -1}`:                   "must not be negative",
		`{"min_tokens": -1}`:                "must not be negative",
	} {
		var warm Warm
		if err := json.Unmarshal([]byte(config), &warm); err != nil {
			t.Fatal(err)
		}
		err := option.Check(&Settings{Warm: warm})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}
