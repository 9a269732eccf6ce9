package fetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// Reasons for ending a run early.
var (
	errPaused  = errors.New("the download was paused")
	errGone    = errors.New("the download was cancelled")
	errClosing = errors.New("lmcaddy is stopping")
)

const (
	// maxRelists bounds the restarts of a run because the hub's files have changed.
	maxRelists = 4
	// listedPatience bounds the wait until the catalog lists the model.
	listedPatience = 5 * time.Minute
)

// start begins a run. j.mu is held.
func (j *job) start() {
	ctx, cancel := context.WithCancelCause(j.jobs.ctx)
	before, done := j.stopped, make(chan struct{})
	j.cancel, j.stopped = cancel, done
	turn := j.jobs.queue.enter()
	j.isWaiting = !turn.isAdmitted()
	j.measure()
	j.set(Downloading, nil)
	j.jobs.running.Go(func() {
		defer close(done)
		defer cancel(nil)
		defer turn.leave()
		if before != nil {
			<-before
		}
		err := turn.wait(ctx)
		if err == nil {
			j.admitted(ctx)
			err = (&run{job: j}).all(ctx)
		}
		j.end(ctx, err)
	})
}

// measure begins to measure the speed of a run. j.mu is held.
func (j *job) measure() {
	now := time.Now()
	j.ran, j.ranAt = 0, now
	for _, f := range j.record.Files {
		j.ran += f.have.Load()
	}
	j.rate.start(now)
}

// admitted says that the run that ctx is of no longer waits.
func (j *job) admitted(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.isWaiting && ctx.Err() == nil {
		j.isWaiting = false
		j.measure()
		j.tell()
	}
}

// end records the result of a run, unless it was paused or canceled. When the process is stopping, the job's state remains
// downloading, so the next start resumes it.
func (j *job) end(ctx context.Context, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.record.State != Downloading || ctx.Err() != nil {
		return
	}
	log := j.jobs.log.With("job", j.record.ID, "model", j.record.Model)
	if err != nil {
		log.Warn("a download has failed", "reason", err)
		j.set(Failed, hub.AsError(err))
		return
	}
	log.Info("a download is completed", "folder", j.jobs.dir(j.record.Folder))
	j.set(Completed, nil)
}

// run is one attempt at a job.
type run struct {
	*job
	hub     *hub.Hub
	relists int
}

// all downloads the missing files, installs them and waits until the model is listed.
func (r *run) all(ctx context.Context) error {
	defer every(ctx, r.jobs.tune.tick, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tell()
	})()
	for {
		err := r.fetch(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, errRelisted) {
			return err
		}
	}
	if err := r.install(); err != nil {
		return err
	}
	if r.jobs.options.Listed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listedPatience)
	defer cancel()
	files := r.files()
	if err := r.jobs.options.Listed(ctx, r.jobs.dir(files[len(files)-1].Local)); err != nil {
		return hub.Errorf(hub.Internal, "The files are fetched and checked, but the model isn't listed: %w. Look at the files, and "+
			"resume the download to try again.", err)
	}
	return nil
}

// fetch downloads every incomplete file. errRelisted means that the list of files has changed.
func (r *run) fetch(ctx context.Context) error {
	var err error
	if r.hub, err = r.jobs.HubOf(r.record.Hub); err != nil {
		return err
	}
	if err := r.jobs.checkSpace(r.job); err != nil {
		return err
	}
	for i := range r.files() {
		if err := r.file(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) revision() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Revision
}

// files returns the job's files. Only the run changes them.
func (r *run) files() []file {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Files
}

func (r *run) file(ctx context.Context, i int) error {
	f := r.files()[i]
	free, err := r.jobs.claims.take(ctx, f.Local) // jobs for two quantizations may share a projector
	if err != nil {
		return err
	}
	defer free()
	if !f.Replace && r.jobs.isThere(f) {
		f.have.Store(f.Size)
		return removePart(r.jobs.root, f.name())
	}
	p, err := openPart(r.jobs.root, f.name(), f.RemoteFile, f.have)
	if err != nil {
		return err
	}
	err = r.part(ctx, p)
	if closing := p.close(); err == nil {
		err = closing
	}
	if err != nil || !f.Early {
		return err
	}
	if err := installFile(r.jobs.root, f.name()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Files[i].Replace = false
	return nil
}

// part completes a part. If the hub's file differs from its list, the list is read again.
func (r *run) part(ctx context.Context, p *part) error {
	for {
		err := r.gather(ctx, p)
		f, ok := errors.AsType[*hub.Error](err)
		if !ok || f.Difference == hub.NoDifference {
			return err
		}
		resumed := p.resumed
		if r.relists++; r.relists > maxRelists {
			return err
		}
		if err := r.relist(ctx); err != nil {
			return err
		}
		switch { // the list hasn't changed
		case f.Difference == hub.OtherTag:
			p.mu.Lock()
			p.anyETag, p.etag, p.changed, p.resumed = true, "", true, true
			p.mu.Unlock()
		case f.Difference == hub.OtherSum && resumed:
			p.resumed = false // it may consist of two versions, so download it once more at once
		default:
			return err
		}
	}
}

func (r *run) gather(ctx context.Context, p *part) error {
	if p.have.Load() < p.want.Size {
		lanes := 1
		if p.want.Size >= r.jobs.tune.parallelFrom {
			lanes = r.jobs.options.Parallel
		}
		shared, _ := r.jobs.gates.LoadOrStore(r.hub.String(), new(gate))
		g := &ranges{
			hub: r.hub, client: r.hub.Client(r.jobs.Transport), tune: r.jobs.tune, part: p, repo: r.record.Repo, lanes: lanes,
			gate: shared.(*gate),
			meter: func(n int) {
				now := time.Now()
				r.lastByte.Store(now.UnixNano())
				r.rate.add(n, now)
			},
			retry: func(why *hub.Error) {
				r.jobs.log.Debug("a download is tried again", "job", r.record.ID, "reason", why)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.trouble = trouble{why.Message, time.Now()}
			},
		}
		if err := g.get(ctx, r.hub.Resolve(r.record.Repo, r.revision(), p.want.Path)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.verify(ctx)
}

// errRelisted says that the hub's files have changed.
var errRelisted = errors.New("the hub's files have changed")

// relist reads the hub's list again. If it has changed, the job takes the new list, and the error is errRelisted.
func (r *run) relist(ctx context.Context) error {
	l, err := r.jobs.ListFiles(ctx, r.hub, r.record.Repo, r.record.Branch)
	if err != nil {
		return err
	}
	files := slices.Clone(r.files())
	changed := l.Revision != r.revision() // the old one may have been deleted
	for i := range files {
		at := slices.IndexFunc(l.Files, func(n hub.RemoteFile) bool { return n.Path == files[i].Path })
		if at < 0 {
			return hub.Errorf(hub.ModelNotFound, "%s has no %s of %s any more: its publisher has taken it away. Start the download anew "+
				"to see what there is.", r.hub.Name(), files[i].Path, r.record.Repo)
		}
		if !l.Files[at].SameContent(files[i].RemoteFile) {
			files[i].RemoteFile, files[i].Replace, changed = l.Files[at], true, true
			files[i].have.Store(0)
		}
	}
	if !changed {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Files, r.record.Revision = files, l.Revision
	r.jobs.save(&r.record)
	r.jobs.log.Info("the hub's files have changed, so the new ones are fetched", "job", r.record.ID, "repo", r.record.Repo)
	return errRelisted
}

// install renames the files to their final names. The one that completes the model comes last.
func (r *run) install() error {
	files := r.files()
	isInstalled := make([]bool, len(files))
	for i, f := range files {
		_, err := r.jobs.root.Lstat(f.name() + hub.PartSuffix)
		isInstalled[i] = err != nil && r.jobs.isThere(f)
	}
	r.mu.Lock()
	for i, f := range files {
		r.record.Files[i].Installed = f.Installed || !isInstalled[i] && !f.Early
	}
	r.jobs.save(&r.record) // before renaming, so that a job canceled after a crash knows what to delete
	r.mu.Unlock()
	for i, f := range files {
		if isInstalled[i] {
			continue
		}
		if err := installFile(r.jobs.root, f.name()); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.record.Files {
		r.record.Files[i].Replace = false
	}
	return nil
}
