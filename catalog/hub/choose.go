package hub

import (
	"path"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Wish is what a request asks for.
type Wish struct {
	Quantization string // empty: the best that fits
	File         string // a path in the repository; empty: any
	Dir          string // a folder in the repository; empty: all of it
}

// Machine is what the choice depends on besides the wish.
type Machine struct {
	Memory  int64                   // bytes available to a model; 0: unknown
	formats []catalog.Format        // that an engine runs; empty: all
	prefers catalog.Format          // where there are several; empty: GGUF
	Have    func([]RemoteFile) bool // reports whether all of them are on disk
}

func (m Machine) runs(f catalog.Format) bool {
	return len(m.formats) == 0 || slices.Contains(m.formats, f)
}

// PrefersMLX reports whether MLX is chosen where there are GGUF files as well.
func (m Machine) PrefersMLX() bool {
	return m.prefers == catalog.FormatMLX && m.runs(catalog.FormatMLX)
}

// MemoryFor estimates the memory that a running model of this size takes: weights, cache and compute buffers.
func MemoryFor(size int64) int64 { return size + size/8 }

// choice is the files to fetch.
type choice struct {
	Quantization string
	Files        []RemoteFile // the file that completes the model comes last
}

// Choose picks the files of a repository that satisfy a wish.
func Choose(l Listing, w Wish, m Machine) (choice, error) {
	repo, files := l.Repo, l.below(w.Dir)
	var whole, incomplete []variant
	var projectors []RemoteFile
	if m.runs(catalog.FormatGGUF) {
		whole, incomplete, projectors = variants(files)
	}
	if m.PrefersMLX() && l.isSurelyMLX() && w.File == "" && len(whole) > 0 {
		if c, err := chooseMLX(l, w, m); err == nil {
			return c, nil
		}
	}
	if RoleOf(w.File) == filename.Drafter { // it comes alone: which model it is for, its user knows
		whole, incomplete = grouped(slices.DeleteFunc(slices.Clone(files),
			func(f RemoteFile) bool { return RoleOf(f.Path) != filename.Drafter }))
		projectors = nil
	}
	switch {
	case len(whole) > 0:
		v, err := chooseVariant(repo, whole, projectors, w, m)
		if err != nil {
			return choice{}, err
		}
		return v.with(projectorFor(v, projectors)), nil
	case len(incomplete) > 0:
		return choice{}, Errorf(HubFailed, "%s lacks parts of %s: its publisher has to complete it. Try another repository.", repo,
			list(incomplete))
	default:
		l.Files = files
		return chooseMLX(l, w, m)
	}
}

// below returns the files in a folder; in all if it is empty.
func (l *Listing) below(dir string) []RemoteFile {
	if dir == "" {
		return l.Files
	}
	return slices.DeleteFunc(slices.Clone(l.Files), func(f RemoteFile) bool { return !strings.HasPrefix(f.Path, dir+"/") })
}

// isSurelyMLX reports whether the repository's safetensors are for MLX, by what the hub says of it or by its name.
func (l *Listing) isSurelyMLX() bool {
	return l.library == mlx || strings.Contains(strings.ToLower(l.Repo), mlx)
}

// with returns the files of the variant and its projector. The first part comes last: without it there is no model.
func (v variant) with(projector RemoteFile) choice {
	c := choice{Quantization: v.quantization}
	if projector.Path != "" {
		c.Files = append(c.Files, projector)
	}
	c.Files = append(c.Files, v.files[1:]...)
	c.Files = append(c.Files, v.files[0])
	return c
}

func chooseVariant(repo string, all []variant, projectors []RemoteFile, w Wish, m Machine) (variant, error) {
	switch {
	case w.File != "":
		return chooseFile(repo, all, w)
	case w.Quantization != "":
		return chooseQuantization(repo, all, w.Quantization)
	}
	if i := slices.IndexFunc(all, func(v variant) bool { return m.Have(v.with(projectorFor(v, projectors)).Files) }); i >= 0 {
		return all[i], nil // don't download another variant of what is on disk
	}
	for _, v := range all {
		total := v.size() + projectorFor(v, projectors).Size
		if m.Memory <= 0 || MemoryFor(total) <= m.Memory {
			return v, nil
		}
	}
	return variant{}, Errorf(TooLarge,
		"No variant of %s fits this machine's %s for models. There are: %s. To download one all the same, give the model's URL with a "+
			"quantization.",
		repo, FormatSize(m.Memory), list(all)).About("model")
}

func chooseFile(repo string, all []variant, w Wish) (variant, error) {
	for _, v := range all {
		if !slices.ContainsFunc(v.files, func(f RemoteFile) bool { return f.Path == w.File }) {
			continue
		}
		if w.Quantization != "" && normalQuantization(w.Quantization) != normalQuantization(v.quantization) {
			return variant{}, Errorf(Invalid, "The file %s is %s, but the quantization that was asked for is %s: leave one of them out.",
				w.File, v.label(), w.Quantization).About("quantization")
		}
		return v, nil
	}
	switch role := RoleOf(w.File); role {
	case "":
	case filename.Projector:
		return variant{}, Errorf(Invalid, "%s is a projector, no model: it comes along with any model of %s.", w.File, repo).About("model")
	default:
		return variant{}, Errorf(Invalid, "%s is no model, but a file for one (%s). There are: %s.", w.File, role, list(all)).About("model")
	}
	return variant{}, Errorf(ModelNotFound, "%s has no model in a file %s. There are: %s.", repo, w.File, list(all)).About("model")
}

func chooseQuantization(repo string, all []variant, asked string) (variant, error) {
	want := normalQuantization(asked)
	var near []variant
	for _, exact := range []bool{true, false} {
		for _, v := range all {
			have := normalQuantization(v.quantization)
			isNear := strings.TrimPrefix(have, "UD-") == want || have == want+"_MOE" || strings.EqualFold(v.name, asked)
			if have == want || !exact && isNear {
				near = append(near, v)
			}
		}
		if len(near) > 0 {
			break
		}
	}
	switch len(near) {
	case 0:
		return variant{}, Errorf(Invalid, "%s has no quantization %q. There are: %s.", repo, asked, list(all)).About("quantization")
	case 1:
		return near[0], nil
	}
	var names []string
	for _, v := range near {
		names = append(names, v.files[0].Path)
	}
	return variant{}, Errorf(Invalid, "%s has several models of the quantization %s: %s. Give the URL of one of the files.",
		repo, asked, strings.Join(names, ", ")).About("quantization")
}

// mlxEndings are the extensions of files that an engine reads of an MLX model. Other files in a repository, such as the same
// weights in other formats, aren't downloaded.
var mlxEndings = []string{".safetensors", ".json", ".jsonl", ".txt", ".jinja", ".model", ".tiktoken", ".py"}

// chooseMLX picks the files of an MLX repository, which holds one model.
func chooseMLX(l Listing, w Wish, m Machine) (choice, error) {
	repo, files := l.Repo, l.Files
	config := slices.IndexFunc(files, func(f RemoteFile) bool { return f.Path == "config.json" })
	if config < 0 || !slices.ContainsFunc(files, isWeight) {
		lacks := "neither GGUF files nor safetensors with a config.json"
		if !m.runs(catalog.FormatGGUF) {
			lacks = "no safetensors with a config.json, which is what this machine has an engine for"
		}
		return choice{}, Errorf(ModelNotFound, "%s holds no model that can be run here: %s.", repo, lacks).About("model")
	}
	if !m.runs(catalog.FormatMLX) {
		return choice{}, Errorf(NotImplemented, "%s holds no GGUF files, and this machine has no engine for the others. Look for a "+
			"repository of the same model whose name ends in -GGUF.", repo).About("model")
	}
	if l.library != "" && !l.isSurelyMLX() {
		return choice{}, Errorf(ModelNotFound, "%s holds no GGUF files, and its safetensors are for %s, not for MLX. Look for a "+
			"repository of the same model whose name ends in -GGUF, or one of mlx-community.",
			repo, l.library).About("model")
	}
	c := choice{Quantization: filename.LastQuantization(path.Base(repo))}
	if m := bitsWord.FindStringSubmatch(repo); m != nil {
		c.Quantization = m[1] + "bit"
	}
	if w.Quantization != "" && normalQuantization(w.Quantization) != normalQuantization(c.Quantization) {
		whole := strings.TrimSuffix("it is one model as a whole, "+c.Quantization, ", ")
		return choice{}, Errorf(Invalid, "%s has no quantization %q: %s.", repo, w.Quantization, whole).About("quantization")
	}
	total := int64(0)
	for _, f := range files {
		ext := path.Ext(f.Path)
		switch {
		case f.Path == "config.json" || strings.HasPrefix(f.Path, ".") || !slices.Contains(mlxEndings, ext):
			continue
		case ext == ".safetensors" && !isWeight(f):
			continue // the same weights in another format, or an adapter
		}
		total += f.Size
		c.Files = append(c.Files, f)
	}
	c.Files = append(c.Files, files[config]) // without it there is no model
	if m.Memory > 0 && MemoryFor(total) > m.Memory && w.Quantization == "" {
		return choice{}, Errorf(TooLarge,
			"%s has %s of weights, which don't fit this machine's %s for models. Look for one with fewer bits, or fewer parameters.",
			repo, FormatSize(total), FormatSize(m.Memory)).About("model")
	}
	return c, nil
}

// isWeight reports whether the engine would load a file of a repository as weights.
func isWeight(f RemoteFile) bool {
	return path.Ext(f.Path) == ".safetensors" && strings.HasPrefix(f.Path, "model") && !strings.Contains(f.Path, "/")
}

// Offered is what can be chosen of a repository.
type Offered struct {
	choice

	Name   string // by which it is chosen
	Format catalog.Format
}

// AllChoices returns what can be downloaded of a repository and run here, best first.
func AllChoices(l Listing, dir string, m Machine) (all []Offered, _ error) {
	m.Memory = 0
	files := l.below(dir)
	if m.runs(catalog.FormatGGUF) {
		whole, _, projectors := variants(files)
		for _, v := range whole {
			all = append(all, Offered{v.with(projectorFor(v, projectors)), v.label(), catalog.FormatGGUF})
		}
	}
	l.Files = files
	if isMLX := m.PrefersMLX() && l.isSurelyMLX(); len(all) > 0 && !isMLX {
		return all, nil
	}
	mlx, err := chooseMLX(l, Wish{}, m)
	switch {
	case err == nil:
		return append(all, Offered{mlx, mlx.Quantization, catalog.FormatMLX}), nil
	case len(all) > 0:
		return all, nil
	}
	_, err = Choose(l, Wish{}, m) // which may know more of why there is nothing
	return nil, err
}

// Recommended is what would be chosen of a repository if nothing of it were on disk; without files if nothing fits.
func Recommended(l Listing, dir string, m Machine) choice {
	m.Have = func([]RemoteFile) bool { return false }
	best, err := Choose(l, Wish{Dir: dir}, m)
	if err != nil {
		return choice{}
	}
	return best
}
