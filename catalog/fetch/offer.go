package fetch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// Offer is what a repository has to choose from.
type Offer struct {
	Model    string // the name by which it can be requested, without a quantization
	Repo     string // publisher/repository on the hub, in the hub's spelling
	Page     string // its address
	Variants []Variant
}

// Variant is a model of a repository, usually one of several quantizations.
type Variant struct {
	Quantization string // by which it is chosen; empty if it has no name
	Format       catalog.Format
	Bits         int   // nominal, of a weight; 0: unknown
	SizeBytes    int64 // of all its files
	FitsMemory   bool
	FitsDisk     bool
	Downloaded   bool
	Recommended  bool // what a request without a quantization chooses, as if nothing were on disk
}

// Offered returns the variants of the model that a request names, best first. The errors are those of Start. May is asked for each
// variant; those that it forbids are left out.
func (s *Jobs) Offered(ctx context.Context, request Request) (Offer, error) {
	r, err := s.Parse(request.Model)
	if err != nil {
		return Offer{}, err
	}
	m := s.Machine()
	if r.Mlx != "" && m.PrefersMLX() {
		r.Repo = r.Mlx
	}
	if request.May != nil {
		if err := request.May(r.Folder, "", false); err != nil {
			return Offer{}, err
		}
	}
	l, err := s.Locate(ctx, &r, m, s.log)
	if err != nil {
		if ctx.Err() != nil {
			return Offer{}, context.Cause(ctx)
		}
		return Offer{}, hub.AsError(err)
	}
	folders := r.FoldersIn(&l)
	choices, err := hub.AllChoices(l, r.Dir, m)
	if err != nil {
		return Offer{}, hub.AsError(err)
	}
	offer := Offer{Repo: l.Repo, Page: r.Hub.Page(l.Repo)}
	if offer.Model, _, _ = strings.Cut(strings.TrimSpace(request.Model), "@"); r.FromURL {
		offer.Model = strings.TrimSpace(request.Model)
	}
	best := hub.Recommended(l, r.Dir, m)
	for _, c := range choices {
		if request.May != nil && request.May(folders[0], c.Quantization, true) != nil {
			continue
		}
		v := Variant{Quantization: c.Name, Format: c.Format, Bits: hub.BitsOf(c.Quantization)}
		for _, f := range c.Files {
			v.SizeBytes += f.Size
		}
		v.FitsMemory = m.Memory <= 0 || hub.MemoryFor(v.SizeBytes) <= m.Memory
		v.Downloaded = s.hasElsewhere(l.Repo, c.Files) != "" ||
			slices.ContainsFunc(folders, func(folder string) bool { return s.areThere(filesIn(folder, c.Files)) })
		plan := &record{Download: Download{Folder: folders[0]}, Files: filesIn(folders[0], c.Files)}
		v.FitsDisk = v.Downloaded || s.roomFor(s.planned(plan)).isEnough()
		v.Recommended = len(best.Files) > 0 && slices.Equal(c.Files, best.Files)
		offer.Variants = append(offer.Variants, v)
	}
	return offer, nil
}

// Preview is what a request would download.
type Preview struct {
	Job              // without an ID, unless there is a job for it already; its State is AlreadyDownloaded for a model on disk
	Sizes    []int64 // in bytes, of Files
	Left     int64   // bytes that would be fetched
	Others   int64   // bytes that other downloads have left to fetch
	Free     int64   // bytes of the disk that are free; -1: unknown
	FitsDisk bool
}

// Preview returns what Start would do, and does nothing. The errors are those of Start, except for a disk that is too full.
func (s *Jobs) Preview(ctx context.Context, request Request) (Preview, error) {
	rec, there, err := s.prepare(ctx, request)
	if err != nil {
		return Preview{}, err
	}
	if rec == nil {
		return Preview{Job: there, Free: -1, FitsDisk: true}, nil
	}
	if j := s.sameJob(rec); j != nil {
		return s.preview(j), nil
	}
	if rec.elsewhere != "" || s.areThere(rec.Files) {
		return Preview{Job: s.already(rec), Free: -1, FitsDisk: true}, nil
	}
	return s.preview(s.planned(rec)), nil
}

// sameJob returns a job for the same files as a plan that isn't completed, or nil.
func (s *Jobs) sameJob(rec *record) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.sorted() {
		j.mu.Lock()
		is := j.record.sameAs(rec) && j.record.State != Completed
		j.mu.Unlock()
		if is {
			return j
		}
	}
	return nil
}

func (s *Jobs) preview(j *job) Preview {
	r := s.roomFor(j)
	p := Preview{Job: j.snapshot(), Left: r.need, Others: r.others, Free: r.free, FitsDisk: r.isEnough()}
	if !r.known {
		p.Free = -1
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.record.Files {
		p.Sizes = append(p.Sizes, f.Size)
	}
	return p
}

// spareBytes is the space to leave free on the disk.
const spareBytes = 64 << 20

type modelsDisk struct {
	models string // its absolute path
	root   *os.Root
}

// dir returns the absolute path of a job's folder.
func (d *modelsDisk) dir(folder string) string {
	return filepath.Join(d.models, filepath.FromSlash(folder))
}

// isThere reports whether a file of the right size exists. Unlike the files that are written, it may be a link that leads out
// of the folder, since users link models.
func (d *modelsDisk) isThere(f file) bool {
	info, err := os.Stat(filepath.Join(d.models, f.name()))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

func (d *modelsDisk) areThere(files []file) bool {
	return !slices.ContainsFunc(files, func(f file) bool { return !d.isThere(f) })
}

// haveOf returns how many bytes of a file are there.
func (d *modelsDisk) haveOf(f file, state State) int64 {
	if state == Completed || !f.Replace && d.isThere(f) {
		return f.Size
	}
	if c, ok := readCheckpoint(d.root, f.name(), f.RemoteFile); ok {
		return c.Done.bytes()
	}
	return 0
}

// room is the space that a job needs on the disk.
type room struct {
	need   int64 // bytes that are left to fetch
	others int64 // bytes that other downloads have left
	free   int64 // bytes; 0 if unknown
	known  bool  // free is
}

func (r room) isEnough() bool { return !r.known || r.need == 0 || r.need+r.others+spareBytes <= r.free }

func (s *Jobs) roomFor(j *job) room {
	free, err := s.options.Free(s.models)
	if err != nil {
		s.log.Warn("how much of the disk is free isn't known", "folder", s.models, "error", err)
		return room{need: j.left()} // writing will show
	}
	s.mu.Lock()
	all := s.sorted()
	s.mu.Unlock()
	r := room{need: j.left(), free: free, known: true}
	for _, o := range all {
		if o != j && o.snapshot().State == Downloading {
			r.others += o.left()
		}
	}
	return r
}

// checkSpace checks that the disk has room for the rest of a job and of all other downloads.
func (s *Jobs) checkSpace(j *job) error {
	r := s.roomFor(j)
	if r.isEnough() {
		return nil
	}
	beside := ""
	if r.others > 0 {
		beside = ", beside " + hub.FormatSize(r.others) + " of other downloads"
	}
	return hub.Errorf(hub.NoSpace, "The disk has too little room: %s are to be fetched%s, and %s are free, of which %s have to stay free. "+
		"Free some space, or put the models folder on another disk.", hub.FormatSize(r.need), beside,
		hub.FormatSize(r.free), hub.FormatSize(spareBytes))
}
