package fetch

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// Pause stops a download until it is resumed. It keeps the downloaded data, and returns when the download has stopped.
func (s *Jobs) Pause(ctx context.Context, id string) (Job, error) {
	return s.stop(ctx, id, Paused, errPaused)
}

// Cancel ends a download that isn't completed, and deletes its files. The job's state becomes failed, and it can be resumed from the start.
func (s *Jobs) Cancel(ctx context.Context, id string) (Job, error) {
	return s.stop(ctx, id, Failed, errGone)
}

func (s *Jobs) stop(ctx context.Context, id string, to State, cause error) (Job, error) {
	j, err := s.find(id)
	if err != nil {
		return Job{}, err
	}
	j.mu.Lock()
	from, stopped := j.record.State, j.stopped
	cancelled := to == Failed
	switch {
	case from == Completed && cancelled:
		j.mu.Unlock()
		return Job{}, hub.Errorf(hub.Conflict, "The download %s is complete, so it can't be cancelled: delete its model instead.", id)
	case from == Completed, from == Failed && !cancelled:
		j.mu.Unlock()
		return Job{}, hub.Errorf(hub.Conflict, "The download %s is %s: only one that is downloading can be paused.", id, from)
	case from != to || cancelled:
		var why *hub.Error
		if cancelled {
			why = hub.Errorf(hub.Cancelled, "It was cancelled.")
		}
		j.set(to, why)
		if j.cancel != nil {
			j.cancel(cause)
		}
	}
	j.mu.Unlock()
	if stopped != nil {
		select {
		case <-stopped:
		case <-ctx.Done():
			return Job{}, context.Cause(ctx)
		}
	}
	if cancelled {
		j.discard()
	}
	return j.snapshot(), nil
}

// discard deletes the files of a canceled job, unless it has been resumed.
func (j *job) discard() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.record.State != Failed {
		return
	}
	for i, f := range j.record.Files {
		err := removePart(j.jobs.root, f.name())
		if f.Installed && j.jobs.isThere(f) {
			err = errors.Join(err, j.jobs.root.Remove(f.name()))
		}
		if err != nil {
			j.jobs.log.Warn("deleting what a cancelled download left", "job", j.record.ID, "error", err)
			continue
		}
		j.record.Files[i].Installed = false
		if !j.jobs.isThere(f) {
			f.have.Store(0)
		}
	}
	dir := filepath.FromSlash(j.record.Folder)
	entries, err := fs.ReadDir(j.jobs.root.FS(), j.record.Folder)
	isForeign := func(e fs.DirEntry) bool {
		path := filepath.Join(dir, e.Name())
		return !slices.ContainsFunc(j.record.Files, func(f file) bool { return f.Early && f.name() == path })
	}
	if err == nil && !slices.ContainsFunc(entries, isForeign) { // or an installed projector could belong to another file
		for _, f := range j.record.Files {
			if f.Early && j.jobs.root.Remove(f.name()) == nil {
				f.have.Store(0)
			}
		}
	}
	j.jobs.save(&j.record)
	for dir != "." && j.jobs.root.Remove(dir) == nil { // and the publisher's folder, if they are empty
		dir = filepath.Dir(dir)
	}
}

// Resume resumes a paused or failed download. It does nothing to one that is downloading.
func (s *Jobs) Resume(id string) (Job, error) {
	j, err := s.find(id)
	if err != nil {
		return Job{}, err
	}
	s.mu.Lock() // excludes Close
	defer s.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.record.State {
	case Completed:
		return Job{}, hub.Errorf(hub.Conflict, "The download %s is completed: there is nothing to resume.", id)
	case Paused, Failed:
		if err := s.ctx.Err(); err != nil {
			return Job{}, hub.Errorf(hub.Conflict, "lmcaddy is stopping: resume the download when it runs again.")
		}
		j.start()
	}
	return j.now(), nil
}
