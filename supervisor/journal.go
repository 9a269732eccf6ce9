package supervisor

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// engines are the children of a supervisor.
var engines = child.Kind{Variable: "LMCADDY_ENGINE", Noun: "an engine"}

// mark returns the mark of a launch.
func (o *Options) mark(gen uint64) child.Mark {
	return engines.Mark(o.Journal, fmt.Sprintf("%s.%d", o.id, gen))
}

// EndLeftovers kills the engines that a crashed server with this journal left behind, removes their folders, and returns when
// they are gone. No other server may be using the journal.
func EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	engines.EndLeftovers(ctx, journal, log)
	removeFolders(journal)
}
