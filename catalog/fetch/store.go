package fetch

import (
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const recordSuffix = ".json"

func (s *Jobs) save(r *record) {
	err := atomicfile.Write(s.state, r.ID+recordSuffix, 0o600, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(r)
	})
	if err != nil { // the job goes on, but a restart will find its old state
		s.log.Error("a download's state can't be saved", "job", r.ID, "error", err)
	}
}

// load reads the saved jobs, and resumes those that were downloading.
func (s *Jobs) load() {
	entries, err := fs.ReadDir(s.state.FS(), ".")
	if err != nil {
		s.log.Error("earlier downloads can't be read", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, atomicfile.TempSuffix) {
			_ = s.state.Remove(name) // left by a crash
			continue
		}
		id, ok := strings.CutSuffix(name, recordSuffix)
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		j, err := s.read(id)
		if err != nil {
			s.log.Warn("a download's file can't be read, so it is skipped", "file", name, "error", err)
			continue
		}
		s.jobs[id] = j
	}
	for _, j := range s.sorted() {
		j.mu.Lock()
		if speed := j.record.speed(); speed > 0 {
			s.speed.Store(speed)
		}
		if j.record.State == Downloading {
			s.log.Info("a download resumes", "job", j.record.ID, "model", j.record.Model)
			j.start()
		}
		j.mu.Unlock()
	}
}

func (s *Jobs) read(id string) (*job, error) {
	text, err := s.state.ReadFile(id + recordSuffix)
	if err != nil {
		return nil, err
	}
	j := s.newJob(record{})
	if err := json.Unmarshal(text, &j.record); err != nil {
		return nil, err
	}
	if err := j.record.validate(id); err != nil {
		return nil, err
	}
	for i := range j.record.Files {
		f := &j.record.Files[i]
		f.have = new(atomic.Int64)
		f.have.Store(s.haveOf(*f, j.record.State))
	}
	return j, nil
}

// validate checks a saved record. Its names are checked like those from a hub.
func (r *record) validate(id string) error {
	publisher, repo, _ := strings.Cut(r.Folder, "/")
	if err := hub.CheckRepo(publisher, repo); err != nil {
		return err
	}
	switch r.State {
	case Downloading, Paused, Completed, Failed:
	default:
		return hub.Errorf(hub.Internal, "its state %q is none", r.State)
	}
	if r.ID != id || len(r.Files) == 0 {
		return hub.Errorf(hub.Internal, "it is of another job, or of none")
	}
	for _, f := range r.Files {
		if _, err := hub.LocalPath(f.Local); err != nil {
			return err
		}
		if !strings.HasPrefix(f.Local, r.Folder+"/") || f.Size < 0 {
			return hub.Errorf(hub.Internal, "its file %q is not in its folder", f.Local)
		}
	}
	return nil
}

func (s *Jobs) newJob(r record) *job {
	return &job{jobs: s, record: r, subscribers: map[chan Job]struct{}{}}
}

// speed returns the bytes per second of a completed download; 0 if it isn't one.
func (r *record) speed() int64 {
	took := r.CompletedAt.Sub(r.StartedAt)
	if r.State != Completed || took <= 0 {
		return 0
	}
	total := int64(0)
	for _, f := range r.Files {
		total += f.Size
	}
	return int64(float64(total) / took.Seconds())
}
