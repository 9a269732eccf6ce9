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
func checkStore(ctx context.Context, s *Subject) (found findings) {
	if said := s.setting("store"); strings.HasPrefix(said, "postgres") {
		var err error
		switch {
		case s.Server != nil:
			_, err = s.Server.Tokens(ctx)
		case s.Config.PostgresURL != "":
			err = store.CheckPostgres(ctx, s.Config.PostgresURL)
		}
		if err != nil {
			return found.problem("See whether PostgreSQL runs, and whether the address in the option store is right.",
				"The database can't be used: %s.", strings.TrimSuffix(err.Error(), "."))
		}
		return found.ok("The database answers (%s).", said)
	}
	file := s.Home.Database()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return found.ok("Nothing is stored yet.")
	}
	if err == nil && hasModes && info.Mode().Perm()&0o077 != 0 {
		found.warn("Run: chmod 600 "+file, "Other users can read the conversations and tokens in %s.", file)
	}
	if err := store.Check(ctx, file); err != nil {
		return found.problem("Stop lmcaddy, and put a backup in its place, or save what can be read with `sqlite3 FILE .recover`.",
			"The database is damaged or can't be read: %v.", strings.TrimSuffix(err.Error(), "."))
	}
	return found.ok("The database %s is intact.", file)
}

// soon is when a token that will expire is mentioned.
const soon = 14 * 24 * time.Hour

func checkTokens(ctx context.Context, s *Subject) (found findings) {
	if s.Tokens == nil {
		return nil
	}
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return found.warn(`See "lmcaddy token ls".`, "The tokens can't be listed: %s.", strings.TrimSuffix(err.Error(), "."))
	}
	return ofTokens(tokens, time.Now())
}

func ofTokens(tokens []resource.Token, now time.Time) (found findings) {
	for _, t := range tokens {
		if t.Expires == nil || t.Expires.Sub(now) >= soon {
			continue
		}
		name := t.ID
		if t.Name != "" {
			name += " (" + t.Name + ")"
		}
		extend := fmt.Sprintf("lmcaddy token edit %s --expires DURATION extends it", t.ID)
		if t.Expires.After(now) {
			found.warn(extend+".", "The token %s expires on %s.", name, t.Expires.Local().Format("2006-01-02 15:04"))
		} else {
			found.warn(extend+", lmcaddy token revoke "+t.ID+" deletes it.", "The token %s has expired.", name)
		}
	}
	switch {
	case len(tokens) == 0:
		found.ok("There are no tokens.")
	case len(found) == 0:
		found.ok("%s, and none expires soon.", upperFirst(count(len(tokens), "token exists", "tokens exist")))
	}
	return found
}
