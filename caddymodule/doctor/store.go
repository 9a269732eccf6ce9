package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/store"
)

// checkStore checks the database of conversations and tokens.
func checkStore(ctx context.Context, s *Subject) []Finding {
	if strings.HasPrefix(s.setting("store"), "postgres") {
		return s.checkPostgres(ctx)
	}
	file := s.Home.Database()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return ok("Nothing is stored yet.")
	}
	var found []Finding
	if err == nil && hasModes && info.Mode().Perm()&0o077 != 0 {
		found = one(Warning, fmt.Sprintf("Other users can read the conversations and tokens in %s.", file), "Run: chmod 600 "+file)
	}
	if err := store.Check(ctx, file); err != nil {
		return append(found, one(Problem, fmt.Sprintf("The database is damaged or can't be read: %v.",
			strings.TrimSuffix(err.Error(), ".")),
			"Stop lmcaddy, and put a backup in its place, or save what can be read with `sqlite3 FILE .recover`.")...)
	}
	return append(found, ok("The database %s is intact.", file)...)
}

func (s *Subject) checkPostgres(ctx context.Context) []Finding {
	var err error
	switch {
	case s.Server != nil:
		_, err = s.Server.Tokens(ctx)
	case s.Config.PostgresURL != "":
		err = store.CheckPostgres(ctx, s.Config.PostgresURL)
	}
	if err != nil {
		return one(Problem, fmt.Sprintf("The database can't be used: %s.", strings.TrimSuffix(err.Error(), ".")),
			"See whether PostgreSQL runs, and whether the address in the option store is right.")
	}
	return ok("The database answers (%s).", s.setting("store"))
}

// soon is when a token that will expire is mentioned.
const soon = 14 * 24 * time.Hour

// checkTokens looks for tokens that expire.
func checkTokens(ctx context.Context, s *Subject) []Finding {
	if s.Tokens == nil {
		return nil
	}
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return one(Warning, fmt.Sprintf("The tokens can't be listed: %s.", strings.TrimSuffix(err.Error(), ".")), `See "lmcaddy token ls".`)
	}
	return ofTokens(tokens, time.Now())
}

func ofTokens(tokens []resource.Token, now time.Time) (found []Finding) {
	for _, t := range tokens {
		if t.Expires == nil {
			continue
		}
		name := t.ID
		if t.Name != "" {
			name += " (" + t.Name + ")"
		}
		switch left := t.Expires.Sub(now); {
		case left <= 0:
			found = append(found, one(Warning, fmt.Sprintf("The token %s has expired.", name),
				fmt.Sprintf("lmcaddy token edit %s --expires DURATION extends it, lmcaddy token revoke %s deletes it.", t.ID, t.ID))...)
		case left < soon:
			found = append(found, one(Warning, fmt.Sprintf("The token %s expires on %s.", name,
				t.Expires.Local().Format("2006-01-02 15:04")), fmt.Sprintf("lmcaddy token edit %s --expires DURATION extends it.",
				t.ID))...)
		}
	}
	switch {
	case len(tokens) == 0:
		return ok("There are no tokens.")
	case len(found) == 0:
		return ok("%s, and none expires soon.", upperFirst(count(len(tokens), "token exists", "tokens exist")))
	}
	return found
}
