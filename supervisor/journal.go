package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// markVariable is set in the environment of every engine, and inherited by its descendants. It identifies the launch.
const markVariable = "LMCADDY_ENGINE"

// mark identifies the processes of one launch, also after this server has crashed.
type mark struct {
	dir string // the journal's folder; empty: none
	run string // the launch; all launches of a home share a prefix
}

// mark returns the mark of a launch.
func (o *Options) mark(gen uint64) mark {
	return mark{o.Journal, fmt.Sprintf("%s/%s.%d", ownerOf(o.Journal), o.id, gen)}
}

func ownerOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

func (m mark) variable() string { return markVariable + "=" + m.run }

// entry is one launch in the journal.
type entry struct {
	path    string
	PID     int   `json:"pid"`
	Created int64 `json:"created"` // start of the process in milliseconds since 1970, since process ids are reused
}

// write records a launch in the journal.
func (m mark) write(pid int, log *slog.Logger) entry {
	if m.dir == "" {
		return entry{}
	}
	e := entry{path: filepath.Join(m.dir, path.Base(m.run)+".json"), PID: pid, Created: created(pid)}
	if err := e.save(); err != nil {
		log.Warn("an engine couldn't be recorded: if this server crashes, the engine may be left behind", "pid", pid, "error", err)
	}
	return e
}

func (e entry) save() error {
	content, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(e.path, content, 0o600)
}

func (e entry) remove() {
	if e.path != "" {
		_ = os.Remove(e.path)
	}
}

// created returns when a process was started; 0: there is no such process.
func created(pid int) int64 {
	p, err := gopsutil.NewProcess(int32(pid)) //nolint:gosec // the system's process ids fit
	if err != nil {
		return 0
	}
	at, err := p.CreateTime()
	if err != nil {
		return 0
	}
	return at
}

// reapPatience bounds how long EndLeftovers waits for killed processes.
const (
	reapPatience = 10 * time.Second
	reapEvery    = 5 * time.Millisecond // interval of the checks
)

// EndLeftovers kills the engines that a crashed server with this journal left behind, and returns when they are gone. No
// other server may be using the journal.
func EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, reapPatience)
	defer cancel()
	files, _ := filepath.Glob(filepath.Join(journal, "*.json"))
	for _, file := range files {
		var e entry
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &e)
		}
		if err == nil && e.PID > 1 && e.Created != 0 && created(e.PID) == e.Created {
			log.Warn("ending an engine that a crash left behind", "pid", e.PID)
			groupOf(e.PID).kill()
			if p, err := os.FindProcess(e.PID); err == nil {
				_ = p.Kill()
			}
			e.awaitEnd(ctx)
		}
		_ = os.Remove(file)
	}
	endMarked(ctx, ownerOf(journal)+"/", 0, log)
	removeFolders(journal)
}

// endMarked kills the processes whose mark is run, or starts with run if that ends in a slash, including those that they start
// meanwhile, and returns when they are gone. Only process ids greater than above are checked, which is faster.
func endMarked(ctx context.Context, run string, above int, log *slog.Logger) {
	for ctx.Err() == nil {
		killed := killMarked(run, above, log)
		if len(killed) == 0 {
			return
		}
		for _, pid := range killed {
			entry{PID: pid, Created: created(pid)}.awaitEnd(ctx)
		}
	}
}

// awaitEnd waits until a killed process is gone. It polls, since the process isn't a child of this one.
func (e entry) awaitEnd(ctx context.Context) {
	every := time.NewTicker(reapEvery)
	defer every.Stop()
	for e.Created != 0 && created(e.PID) == e.Created && !isZombie(e.PID) {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func isZombie(pid int) bool {
	p, err := gopsutil.NewProcess(int32(pid)) //nolint:gosec // the system's process ids fit
	if err != nil {
		return false
	}
	status, err := p.Status()
	return err == nil && len(status) > 0 && status[0] == gopsutil.Zombie
}

// killAll kills the descendants that a process of this launch has left, also those in groups of their own. To be fast it
// checks only processes with a greater id. If process ids have wrapped around, the next start finds the rest.
func (m mark) killAll(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), outputDelay)
	defer cancel()
	endMarked(ctx, m.run, pid, nil)
}
