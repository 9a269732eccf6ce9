package caddymodule

import (
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// Store defines where conversations are stored.
type Store struct {
	// The URL of a PostgreSQL database. Default: a SQLite file in the home, lmcaddy.db.
	PostgresURL string `json:"postgres_url,omitempty"`

	// How long a conversation is kept after its newest turn; 0: until it is deleted. Default: 0.
	MaxAge caddy.Duration `json:"max_age,omitempty"`

	// How many turns are kept. Beyond that, whole conversations are deleted, the least recently used first. 0: unlimited.
	// Default: 0.
	MaxTurns int `json:"max_turns,omitempty"`

	// How long a verified token stays valid while the store is unreachable; 0: not at all. Default: 5m.
	TokenGrace *caddy.Duration `json:"token_grace,omitempty"`
}

const defaultTokenGrace = 5 * time.Minute

func (s Store) settings(resolve func(string) string) node.StoreSettings {
	grace := defaultTokenGrace
	if s.TokenGrace != nil {
		grace = time.Duration(*s.TokenGrace)
	}
	return node.StoreSettings{
		PostgresURL: resolve(s.PostgresURL),
		Bounds:      store.Bounds{Age: time.Duration(s.MaxAge), Number: s.MaxTurns},
		TokenGrace:  grace,
	}
}

// store reads
//
//	store sqlite|postgres <url> {
//		max_age <duration>
//		max_turns <n>
//		token_grace <duration>
//	}
func (a *App) storeOption(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && args[0] == "sqlite":
		a.Store.PostgresURL = ""
	case len(args) == 2 && args[0] == "postgres":
		a.Store.PostgresURL = args[1]
	default:
		return d.Err("store: either sqlite, or postgres and the URL of a database")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		var value string
		if err := oneArg(d, &value); err != nil {
			return err
		}
		switch word {
		case "max_age":
			age, err := caddy.ParseDuration(value)
			if err != nil || age < 0 {
				return d.Errf("store: max_age %q is no duration, such as 90d", value)
			}
			a.Store.MaxAge = caddy.Duration(age)
		case "max_turns":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return d.Errf("store: max_turns %q is no number of turns", value)
			}
			a.Store.MaxTurns = n
		case "token_grace":
			grace, err := caddy.ParseDuration(value)
			if err != nil || grace < 0 {
				return d.Errf("store: token_grace %q is no duration, such as 5m; 0 is none", value)
			}
			a.Store.TokenGrace = new(caddy.Duration(grace))
		default:
			return d.Errf("store: unknown option %q; there are: %s", word, strings.Join(storeOptions, ", "))
		}
	}
	return nil
}
