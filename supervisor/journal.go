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

// markVariable is in the environment of every engine, and so of whatever an engine starts. It tells whose it is.
const markVariable = "LMCADDY_ENGINE"

// mark is by what the processes of one launch are known, also after we have crashed.
type mark struct {
	dir string // where launches are written down; empty: nowhere
	run string // this launch; it begins with what all launches of a home have
}

// mark makes the mark of a launch.
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
	Created int64 `json:"created"` // when the process was, in milliseconds since 1970: another may get its number
}

// write writes a launch down.
func (m mark) write(pid int, log *slog.Logger) entry {
	if m.dir == "" {
		return entry{}
	}
	e := entry{path: filepath.Join(m.dir, path.Base(m.run)+".json"), PID: pid, Created: created(pid)}
	if err := e.save(); err != nil {
		log.Warn("an engine couldn't be written down: if this server crashes, it may be left behind", "pid", pid, "error", err)
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

// created is when a process was started; 0 if there is none.
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

// reapPatience bounds how long EndLeftovers waits for what it has killed.
const (
	reapPatience = 10 * time.Second
	reapEvery    = 5 * time.Millisecond // how often it looks
)

// EndLeftovers ends the engines that a server left behind which used this journal and crashed. The caller has to know that
// no other server uses it. It returns when they are gone.
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

// endMarked ends the processes whose mark is run, or begins so if that ends in a slash, and those that they start meanwhile;
// of those whose id is above a number, to look at which is quicker. It returns when they are gone.
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

// awaitEnd waits until a killed process is gone. It isn't our child, so it has to be looked at.
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

// killAll ends whatever a process of this launch has started and left, be it in a group of its own. Somebody may wait for its
// end, so only younger processes are looked at; when the system has begun to count anew, the next start finds the rest.
func (m mark) killAll(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), outputDelay)
	defer cancel()
	endMarked(ctx, m.run, pid, nil)
}
