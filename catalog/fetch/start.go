package fetch

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Request is a request for a model.
type Request struct {
	// Model is an entry of the built-in list or publisher/repository, perhaps with @ and a quantization, or a hub's URL.
	Model string
	// Quantization chooses a variant, for a hub's URL only; empty: the best that fits, or the one behind the @.
	Quantization string
	// Owner is who requests it; may be empty.
	Owner string
	// May returns why the model of a folder, publisher/name, may not be downloaded in a quantization; nil: it may. It is called
	// before the hub is asked, with the requested quantization, and afterwards, with the chosen one.
	May func(folder, quantization string, isChosen bool) error
	// MayResume reports whether a job may be resumed that another owner may have paused; nil: it may.
	MayResume func(Job) bool
}

// Start begins a download, or joins the one for the same files. A paused or failed one is resumed, unless MayResume forbids it; a failed
// one then belongs to the caller. A model on disk needs no job. The error is an [*Error], or that of May or of the context.
func (s *Jobs) Start(ctx context.Context, request Request) (Job, error) {
	rec, there, err := s.prepare(ctx, request)
	if err != nil || rec == nil {
		return there, err
	}
	rec.mayResume = request.MayResume
	s.mu.Lock()
	joined, ok := s.joinAny(rec)
	s.mu.Unlock()
	if ok {
		return joined, nil
	}
	if rec.elsewhere != "" || s.areThere(rec.Files) {
		return s.already(rec), nil
	}
	j := s.planned(rec)
	if err := s.checkSpace(j); err != nil {
		return Job{}, err
	}
	return s.add(j)
}

// prepare chooses the files for a request. If the model is on disk, there is no record, but the answer.
func (s *Jobs) prepare(ctx context.Context, request Request) (*record, Job, error) {
	r, err := s.Parse(request.Model)
	if err != nil {
		return nil, Job{}, err
	}
	if r.Mlx != "" && s.Machine().PrefersMLX() {
		r.Repo = r.Mlx
	}
	if request.Quantization != "" && !r.FromURL {
		return nil, Job{}, hub.Errorf(hub.NotImplemented,
			"\"quantization\" is for a model's URL only. Give %s instead of %q, or %s@%s without \"quantization\".",
			r.Hub.Page(r.Repo), request.Model, request.Model, request.Quantization).About("quantization")
	}
	request.Quantization = cmp.Or(request.Quantization, strings.TrimSpace(r.Quantization))
	if request.May != nil {
		if err := request.May(r.Folder, request.Quantization, false); err != nil {
			return nil, Job{}, err
		}
	}
	if there, ok := s.completedBefore(request); ok {
		return nil, there, nil
	}
	if there, ok := s.isHere(ctx, request, r); ok {
		if request.May != nil {
			err = request.May(there.Folder, there.Quantization, true)
		}
		return nil, there, err
	}
	listed, err := s.Locate(ctx, &r, s.Machine(), s.log)
	if err != nil {
		if ctx.Err() != nil {
			return nil, Job{}, context.Cause(ctx)
		}
		return nil, Job{}, hub.AsError(err)
	}
	rec, err := s.plan(request, r, listed)
	if err == nil && request.May != nil {
		err = request.May(rec.Folder, rec.Quantization, true)
	}
	return rec, Job{}, err
}

// completedBefore finds a completed job for the same request whose files still exist, without asking the hub.
func (s *Jobs) completedBefore(request Request) (Job, bool) {
	s.mu.Lock()
	all := s.sorted()
	s.mu.Unlock()
	for _, j := range all {
		j.mu.Lock()
		rec := j.record
		j.mu.Unlock()
		if rec.State == Completed && rec.Model == request.Model && rec.Asked == request.Quantization && s.areThere(rec.Files) {
			return s.already(&rec), true
		}
	}
	return Job{}, false
}

// isHere finds the model in the catalog by the names of the repository. Only names of the first hub are looked up, since other
// hubs may have other models of the same name.
func (s *Jobs) isHere(ctx context.Context, request Request, r hub.Ref) (Job, bool) {
	if s.options.Here == nil || r.Dir != "" || r.Hub.String() != s.First().String() {
		return Job{}, false
	}
	folders := []string{r.Folder}
	if r.Revision == "" {
		folders = append(folders, hub.NamesOf(r.Repo)...)
	}
	for _, folder := range folders {
		if dir, is, ok := s.options.Here(ctx, folder, request.Quantization, r.File); ok {
			there := Download{State: AlreadyDownloaded, Model: request.Model, Repo: r.Repo, Quantization: is, Folder: folder}
			return Job{Download: there, Dir: dir}, true
		}
	}
	return Job{}, false
}

func (s *Jobs) already(r *record) Job {
	there := Download{State: AlreadyDownloaded, Model: r.Model, Repo: r.Repo, Quantization: r.Quantization, Folder: r.Folder}
	job := Job{Download: there, Dir: cmp.Or(r.elsewhere, s.dir(r.Folder))}
	for _, f := range r.Files {
		job.Files = append(job.Files, f.Local)
	}
	return job
}

func (s *Jobs) plan(request Request, r hub.Ref, l hub.Listing) (*record, error) {
	folders := r.FoldersIn(&l)
	folder, elsewhere := r.Folder, ""
	m := s.Machine()
	m.Have = func(files []hub.RemoteFile) bool {
		for _, f := range folders {
			if s.areThere(filesIn(f, files)) {
				folder = f
				return true
			}
		}
		elsewhere = s.hasElsewhere(l.Repo, files)
		return elsewhere != ""
	}
	chosen, err := hub.Choose(l, hub.Wish{Quantization: request.Quantization, File: r.File, Dir: r.Dir}, m)
	if err != nil {
		return nil, hub.AsError(err)
	}
	m.Have(chosen.Files)
	rec := &record{
		Download: Download{
			State: Downloading, Model: request.Model, Owner: request.Owner, Hub: r.Hub.String(), Repo: l.Repo, Revision: l.Revision,
			Quantization: chosen.Quantization, Folder: folder,
		},
		Asked: request.Quantization, Branch: r.Revision, Files: filesIn(folder, chosen.Files), elsewhere: elsewhere,
	}
	if err := rec.check(r.Hub); err != nil {
		return nil, err
	}
	return rec, nil
}

// hasElsewhere returns another folder that has the files, or "".
func (s *Jobs) hasElsewhere(repo string, files []hub.RemoteFile) string {
	if s.options.Elsewhere == nil {
		return ""
	}
	sizes := map[string]int64{}
	for _, f := range files {
		sizes[path.Base(f.Path)] = f.Size
	}
	return s.options.Elsewhere(repo, sizes)
}

// filesIn returns files with their paths below the models folder. All GGUF files of a repository go into one folder, because the catalog
// looks there for parts and projectors. A drafter in a folder for drafters may have its model's name, and stays there.
func filesIn(folder string, all []hub.RemoteFile) []file {
	files := make([]file, 0, len(all))
	for _, f := range all {
		local, dir := f.Path, path.Base(path.Dir(f.Path))
		if filename.IsGGUF(f.Path) {
			local = path.Base(f.Path)
			if filename.FolderRole(dir) == filename.Drafter {
				local = dir + "/" + local
			}
		}
		files = append(files, file{RemoteFile: f, Local: folder + "/" + local, Early: hub.RoleOf(f.Path) == filename.Projector})
	}
	return files
}

func (r *record) check(h *hub.Hub) error {
	total := int64(0)
	places := map[string]bool{}
	for _, f := range r.Files {
		if _, err := hub.LocalPath(f.Local); err != nil {
			return hub.Errorf(hub.Unsafe, "%s names a file of %s that is refused: %w. Nothing was fetched.", h.Name(), r.Repo, err)
		}
		if places[f.Local] {
			return hub.Errorf(hub.HubFailed, "%s has several files named %s, which can't lie in one folder. Give the URL of one of them.",
				r.Repo, path.Base(f.Path))
		}
		places[f.Local] = true
		if f.Size > math.MaxInt64/2-total {
			return hub.Errorf(hub.HubFailed, "%s says that %s has more bytes than there can be. Try again later, or another hub.", h.Name(),
				r.Repo)
		}
		total += f.Size
	}
	return nil
}

// planned returns a job that hasn't begun, with the bytes that are on disk of its files.
func (s *Jobs) planned(rec *record) *job {
	j := s.newJob(*rec)
	for i := range j.record.Files {
		f := &j.record.Files[i]
		f.have = new(atomic.Int64)
		f.have.Store(s.haveOf(*f, Downloading))
	}
	return j
}

// joinAny joins the job for the same files as a plan. s.mu is held.
func (s *Jobs) joinAny(rec *record) (Job, bool) {
	for _, j := range s.sorted() {
		if joined, ok := s.join(j, rec); ok {
			return joined, true
		}
	}
	return Job{}, false
}

// join joins a job if it is for the same files as a plan, and resumes it. s.mu is held.
func (s *Jobs) join(j *job, rec *record) (Job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.record.sameAs(rec) {
		return Job{}, false
	}
	switch j.record.State {
	case Downloading:
		return j.now(), true
	case Paused, Failed:
		if s.ctx.Err() != nil || rec.mayResume != nil && !rec.mayResume(j.now()) {
			return j.now(), true
		}
		if j.record.State == Failed {
			j.record.Owner = rec.Owner
		}
		files := slices.Clone(j.record.Files) // the last run may still read them
		for i := range files {                // as the hub lists them now
			files[i].RemoteFile = rec.Files[i].RemoteFile
			files[i].have.Store(s.haveOf(files[i], Downloading))
		}
		j.record.Files, j.record.Revision = files, rec.Revision
		j.start()
		return j.now(), true
	default:
		return Job{}, false
	}
}

// add starts a new job, unless another request has started it meanwhile.
func (s *Jobs) add(j *job) (Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return Job{}, hub.Errorf(hub.Conflict, "lmcaddy is stopping: start the download when it runs again.")
	}
	if joined, ok := s.joinAny(&j.record); ok {
		return joined, nil
	}
	j.record.ID = newID()
	for s.jobs[j.record.ID] != nil {
		j.record.ID = newID()
	}
	j.record.mayResume = nil
	j.record.StartedAt = time.Now().UTC().Truncate(time.Millisecond)
	s.jobs[j.record.ID] = j
	ended := slices.DeleteFunc(s.sorted(), func(j *job) bool { return !j.snapshot().Ended() })
	for _, old := range ended[:max(0, len(ended)-maxEnded)] {
		delete(s.jobs, old.record.ID)
		_ = s.state.Remove(old.record.ID + recordSuffix)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.start()
	s.log.Info("a download begins", "job", j.record.ID, "model", j.record.Model, "repo", j.record.Repo, "folder", s.dir(j.record.Folder))
	return j.now(), nil
}
