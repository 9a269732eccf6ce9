package child

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"
)

// Kind is a kind of children, each of which bears a mark in its environment.
type Kind struct {
	Variable string // name of the mark's environment variable
	Noun     string // what the log calls a child, such as "an engine"
}

var plain = Kind{"LMCADDY_CHILD", "a child process"}

// Mark identifies the processes of one launch, also after this server has crashed: descendants inherit it.
type Mark struct {
	kind    Kind
	journal string // empty: none
	run     string // identifies the launch; all launches of a journal share a prefix
}

// Mark returns the mark of a launch. No other launch recorded in the journal, a folder, may have the same name. An empty
// journal stands for none.
func (k Kind) Mark(journal, launch string) Mark {
	return Mark{k, journal, ownerOf(journal) + "/" + launch}
}

func ownerOf(journal string) string {
	sum := sha256.Sum256([]byte(journal))
	return hex.EncodeToString(sum[:8])
}

// Env returns the mark as an element of an environment.
func (m Mark) Env() string { return m.kind.Variable + "=" + m.run }

const (
	// markedPatience bounds how long KillAll waits for killed processes.
	markedPatience = 2 * time.Second
	// awaitEvery is the interval at which killed processes are checked.
	awaitEvery = 5 * time.Millisecond
)

// KillAll kills the descendants that the ended process with the given id has left, also those in groups of their own, and waits for their
// end. To be fast it checks only processes with a greater id. If process ids have wrapped around, EndLeftovers finds the rest.
func (m Mark) KillAll(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), markedPatience)
	defer cancel()
	m.kind.endMarked(ctx, m.run, pid, nil)
}

// endMarked kills the processes whose mark is run, or starts with run if that ends in a slash, including those that they start
// meanwhile, and returns when they are gone. Only process ids greater than above are checked, which is faster.
func (k Kind) endMarked(ctx context.Context, run string, above int, log *slog.Logger) {
	for ctx.Err() == nil {
		killed := k.killMarked(run, above, log)
		if len(killed) == 0 {
			return
		}
		for _, pid := range killed {
			Record{PID: pid, Created: created(pid)}.awaitEnd(ctx)
		}
	}
}
