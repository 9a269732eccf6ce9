package child

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// Record is one launch in a journal.
type Record struct {
	path    string // empty: it isn't recorded
	PID     int    `json:"pid"`
	Created int64  `json:"created"` // start of the process in milliseconds since 1970, since process ids are reused
}

// Record records the process of a launch in the journal, until Remove is called. An error is logged.
func (m Mark) Record(pid int, log *slog.Logger) Record {
	if m.journal == "" {
		return Record{}
	}
	r := Record{path: filepath.Join(m.journal, path.Base(m.run)+".json"), PID: pid, Created: created(pid)}
	content, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(r.path, content, 0o600)
	}
	if err != nil {
		log.Warn("a process couldn't be recorded: if this server crashes, it may be left behind", "pid", pid, "error", err)
	}
	return r
}

// Remove removes the record of an ended process.
func (r Record) Remove() {
	if r.path != "" {
		_ = os.Remove(r.path)
	}
}

// created returns when a process was started; 0: there is no such process.
func created(pid int) int64 {
	p, err := lookUp(int32(pid)) //nolint:gosec // the system's process ids fit
	if err != nil {
		return 0
	}
	at, _ := p.CreateTime() // 0 with an error
	return at
}

// leftoverPatience bounds how long EndLeftovers waits for killed processes.
const leftoverPatience = 10 * time.Second

// EndLeftovers kills the children that a crashed server recorded in this journal left behind, and on Linux all their
// descendants, and returns when they are gone. No other server may be using the journal, a folder, which need not exist.
func EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	plain.EndLeftovers(ctx, journal, log)
}

// EndLeftovers is like the function, for children of a kind.
func (k Kind) EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	if journal == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverPatience)
	defer cancel()
	files, _ := filepath.Glob(filepath.Join(journal, "*.json"))
	for _, file := range files {
		var r Record
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &r)
		}
		if err == nil && r.PID > 1 && r.Created != 0 && created(r.PID) == r.Created {
			log.Warn("ending "+k.Noun+" that a crash left behind", "pid", r.PID)
			groupOf(r.PID).Kill()
			if p, err := os.FindProcess(r.PID); err == nil {
				_ = p.Kill()
				_ = p.Release()
			}
			r.awaitEnd(ctx)
		}
		_ = os.Remove(file)
	}
	k.endMarked(ctx, ownerOf(journal)+"/", 0, log)
}

// awaitEnd waits until a killed process is gone. It polls, since the process may not be a child of this one.
func (r Record) awaitEnd(ctx context.Context) {
	every := time.Tick(awaitEvery)
	for r.Created != 0 && created(r.PID) == r.Created && !isZombie(r.PID) {
		select {
		case <-ctx.Done():
			return
		case <-every:
		}
	}
}

func isZombie(pid int) bool {
	p, err := lookUp(int32(pid)) //nolint:gosec // the system's process ids fit
	if err != nil {
		return false
	}
	status, err := p.Status()
	return err == nil && len(status) > 0 && status[0] == gopsutil.Zombie
}
