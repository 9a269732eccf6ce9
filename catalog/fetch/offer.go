package fetch

import (
	"context"
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
