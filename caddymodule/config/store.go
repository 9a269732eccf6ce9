package config

import (
	"errors"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
)

// Store defines where conversations are stored.
type Store struct {
	// The URL of a PostgreSQL database. Default: a SQLite file in the home, lmcaddy.db.
	PostgresURL string `json:"postgres_url,omitempty" head:"sqlite|postgres <url>"`

	// How long a conversation is kept after its newest turn.
	MaxAge caddy.Duration `json:"max_age,omitempty" args:"<duration>" min:"0" otherwise:"0 (until it is deleted)" example:"90d"`

	// How many turns are kept. Beyond that, whole conversations are deleted, the least recently used first.
	MaxTurns int `json:"max_turns,omitempty" args:"<n>" min:"0" otherwise:"0 (unlimited)" example:"100000"`

	// How long a verified token stays valid while the store is unreachable; 0: not at all. Other tokens are refused meanwhile.
	TokenGrace *caddy.Duration `json:"token_grace,omitempty" args:"<duration>" default:"5m" example:"10m"`
}

// Head reads which database it is.
func (s *Store) Head(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "sqlite":
		s.PostgresURL = ""
	case len(args) == 2 && args[0] == "postgres":
		s.PostgresURL = args[1]
	default:
		return errors.New("either sqlite, or postgres and the URL of a database")
	}
	return nil
}

// String returns the database, without its password; empty: that of the home.
func (s Store) String() string {
	if s.PostgresURL == "" {
		return ""
	}
	return "postgres " + option.WithoutPassword(s.PostgresURL)
}

// Warm says which states of conversations are kept in files. With one, a conversation isn't processed again after its model was unloaded,
// or the server restarted.
type Warm struct {
	// Keeps no states, and deletes those that exist. Default: false.
	Off bool `json:"off,omitempty" head:"off|on|<size>"`

	// How much all files may take together. A tenth of the disk, or 1 GiB if that is less, always stays free. Without room, the least
	// recently used states are deleted; of several owners, first those of one with more than half.
	Size option.Size `json:"size,omitempty" args:"<size>" max:"1PiB" otherwise:"1/10 of the free disk, at most 50 GiB" example:"20GiB"`

	// How long a state is kept that isn't used; 0: as long as there is room.
	MaxAge *caddy.Duration `json:"max_age,omitempty" args:"<duration>" default:"7d" example:"3d"`

	// How long an instance must have been unused before its states are saved. Those of an instance that is unloaded are saved at once.
	SaveAfter caddy.Duration `json:"save_after,omitempty" args:"<duration>" default:"1m" example:"30s"`

	// How many tokens a conversation must have for its state to be saved.
	MinTokens int `json:"min_tokens,omitempty" args:"<n>" min:"1" default:"512" example:"1024"`
}

// Head reads whether there are any states, and perhaps their size. A later "off" makes all options before it void.
func (w *Warm) Head(args []string) error {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "on":
		w.Off = false
		return nil
	case len(args) == 1 && args[0] == "off":
		*w = Warm{Off: true}
		return nil
	}
	w.Off = false
	size := option.Of(*w, "size")
	if err := size.Parse(args[0], &w.Size); err != nil || len(args) > 1 {
		return errors.New(`give "off", "on", or a size with its unit, such as 20GiB`)
	}
	return nil
}

// String returns whether there are any; empty: nothing is set.
func (w Warm) String() string {
	switch {
	case w.Off:
		return "off"
	case w != Warm{}:
		return "on"
	}
	return ""
}

// Check returns an error if an option has no effect beside another.
func (w *Warm) Check() error {
	if w.Off && *w != (Warm{Off: true}) {
		return errors.New("warm: no states are kept, so the other options have no effect: leave out either \"off\" or the others")
	}
	return nil
}
