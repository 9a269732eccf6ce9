package doctor

import (
	"context"
	"os"
	"strings"

	"github.com/lmcaddy/lmcaddy/store"
)

// checkStore checks the database of conversations and tokens.
func checkStore(ctx context.Context, s *Subject) (found findings) {
	if said := s.setting("store"); strings.HasPrefix(said, "postgres") {
		if err := s.tryPostgres(ctx); err != nil {
			found.problem("See whether PostgreSQL runs, and whether the address in the option store is right.",
				"The database can't be used: %s.", strings.TrimSuffix(err.Error(), "."))
		} else {
			found.ok("The database answers (%s).", said)
		}
		return found
	}
	file := s.Home.Database()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		found.ok("Nothing is stored yet.")
		return found
	}
	if err == nil && hasModes && info.Mode().Perm()&0o077 != 0 {
		found.warn("Run: chmod 600 "+file, "Other users can read the conversations and tokens in %s.", file)
	}
	if err := store.Check(ctx, file); err != nil {
		found.problem("Stop lmcaddy, and put a backup in its place, or save what can be read with `sqlite3 FILE .recover`.",
			"The database is damaged or can't be read: %v.", strings.TrimSuffix(err.Error(), "."))
	} else {
		found.ok("The database %s is intact.", file)
	}
	return found
}

func (s *Subject) tryPostgres(ctx context.Context) (err error) {
	switch {
	case s.Server != nil:
		_, err = s.Server.Tokens(ctx)
	case s.Config.PostgresURL != "":
		err = store.CheckPostgres(ctx, s.Config.PostgresURL)
	}
	return err
}
