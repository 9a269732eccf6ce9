package fetch

import (
	"context"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
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

// Offered returns the variants of the model that a request names, best first. The errors are those of Start. May is asked for each variant; those
// that it forbids are left out.
func (s *Jobs) Offered(ctx context.Context, request Request) (Offer, error) {
	r, err := s.known.Load().parse(request.Model)
	if err != nil {
		return Offer{}, err
	}
	m := s.machine()
	if r.mlx != "" && m.prefersMLX() {
		r.repo = r.mlx
	}
	if request.May != nil {
		if err := request.May(r.folder, "", false); err != nil {
			return Offer{}, err
		}
	}
	l, err := s.locate(ctx, &r, m, s.log)
	if err != nil {
		if ctx.Err() != nil {
			return Offer{}, context.Cause(ctx)
		}
		return Offer{}, asError(err)
	}
	folders := r.foldersIn(&l)
	choices, err := allChoices(l, r.dir, m)
	if err != nil {
		return Offer{}, asError(err)
	}
	offer := Offer{Repo: l.repo, Page: r.hub.page(l.repo)}
	if offer.Model, _, _ = strings.Cut(strings.TrimSpace(request.Model), "@"); r.fromURL {
		offer.Model = strings.TrimSpace(request.Model)
	}
	best := recommended(l, r.dir, m)
	for _, c := range choices {
		if request.May != nil && request.May(folders[0], c.quantization, true) != nil {
			continue
		}
		v := s.variantOf(&c, folders, l.repo, m)
		v.Recommended = len(best.files) > 0 && slices.Equal(c.files, best.files)
		offer.Variants = append(offer.Variants, v)
	}
	return offer, nil
}

// offered is what can be chosen of a repository.
type offered struct {
	choice

	name   string // by which it is chosen
	format catalog.Format
}

// allChoices returns what can be downloaded of a repository and run here, best first.
func allChoices(l listing, dir string, m machine) (all []offered, _ error) {
	m.memory = 0
	files := l.files
	if dir != "" {
		files = slices.DeleteFunc(slices.Clone(files), func(f remoteFile) bool { return !strings.HasPrefix(f.Path, dir+"/") })
	}
	if m.runs(catalog.FormatGGUF) {
		whole, _, projectors := variants(files)
		for _, v := range whole {
			all = append(all, offered{v.with(projectorFor(v, projectors)), v.label(), catalog.FormatGGUF})
		}
	}
	l.files = files
	if isMLX := m.prefersMLX() && l.isSurelyMLX(); len(all) > 0 && !isMLX {
		return all, nil
	}
	mlx, err := chooseMLX(l, wish{}, m)
	switch {
	case err == nil:
		return append(all, offered{mlx, mlx.quantization, catalog.FormatMLX}), nil
	case len(all) > 0:
		return all, nil
	}
	_, err = choose(l, wish{}, m) // which may know more of why there is nothing
	return nil, err
}

// recommended is what would be chosen of a repository if nothing of it were on disk; without files if nothing fits.
func recommended(l listing, dir string, m machine) choice {
	m.have = func([]remoteFile) bool { return false }
	best, err := choose(l, wish{dir: dir}, m)
	if err != nil {
		return choice{}
	}
	return best
}

// variantOf describes a choice: whether it fits this machine, and whether it is on disk.
func (s *Jobs) variantOf(c *offered, folders []string, repo string, m machine) Variant {
	v := Variant{Quantization: c.name, Format: c.format, Bits: bitsOf(c.quantization)}
	for _, f := range c.files {
		v.SizeBytes += f.Size
	}
	v.FitsMemory = m.memory <= 0 || needs(v.SizeBytes) <= m.memory
	v.Downloaded = s.hasElsewhere(repo, c.files) != "" ||
		slices.ContainsFunc(folders, func(folder string) bool { return s.areThere(filesIn(folder, c.files)) })
	v.FitsDisk = v.Downloaded || s.roomFor(s.planned(&record{Folder: folders[0], Files: filesIn(folders[0], c.files)})).isEnough()
	return v
}

// foldersIn returns the folders in which the model may be, the one that it would be downloaded to first. A repository has the hub's spelling, so
// that it has one folder.
func (r *ref) foldersIn(l *listing) []string {
	if r.fromURL || r.folder == r.repo {
		r.folder = l.repo + r.folder[len(r.repo):]
	}
	folders := []string{r.folder}
	if r.revision == "" { // it may have been downloaded by another of its names
		folders = append(folders, namesOf(l.repo)...)
	}
	return folders
}
