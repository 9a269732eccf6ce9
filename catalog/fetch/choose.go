package fetch

import (
	"path"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// wish is what a request asks for.
type wish struct {
	quantization string // empty: the best that fits
	file         string // a path in the repository; empty: any
	dir          string // a folder in the repository; empty: all of it
}

// machine is what the choice depends on besides the wish.
type machine struct {
	memory  int64                   // bytes available to a model; 0: unknown
	formats []catalog.Format        // that an engine runs; empty: all
	prefers catalog.Format          // where there are several; empty: GGUF
	have    func([]remoteFile) bool // reports whether all of them are on disk
}

func (m machine) runs(f catalog.Format) bool {
	return len(m.formats) == 0 || slices.Contains(m.formats, f)
}

func (m machine) prefersMLX() bool {
	return m.prefers == catalog.FormatMLX && m.runs(catalog.FormatMLX)
}

// needs estimates the memory that a running model of this size takes: weights, cache and compute buffers.
func needs(size int64) int64 { return size + size/8 }

// choice is the files to fetch.
type choice struct {
	quantization string
	files        []remoteFile // the file that completes the model comes last
}

// choose picks the files of a repository that satisfy a wish.
func choose(l listing, w wish, m machine) (choice, error) {
	repo, files := l.repo, l.files
	if w.dir != "" {
		files = slices.DeleteFunc(slices.Clone(files), func(f remoteFile) bool { return !strings.HasPrefix(f.Path, w.dir+"/") })
	}
	var whole, incomplete []variant
	var projectors []remoteFile
	if m.runs(catalog.FormatGGUF) {
		whole, incomplete, projectors = variants(files)
	}
	if m.prefersMLX() && l.isSurelyMLX() && w.file == "" && len(whole) > 0 {
		if c, err := chooseMLX(l, w, m); err == nil {
			return c, nil
		}
	}
	if roleOf(w.file) == filename.Drafter { // it comes alone: which model it is for, its user knows
		whole, incomplete = grouped(slices.DeleteFunc(slices.Clone(files), func(f remoteFile) bool { return roleOf(f.Path) != filename.Drafter }))
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
		return choice{}, errorf(HubFailed, "%s lacks parts of %s: its publisher has to complete it. Try another repository.", repo, list(incomplete))
	default:
		l.files = files
		return chooseMLX(l, w, m)
	}
}

// isSurelyMLX reports whether the repository's safetensors are for MLX, by what the hub says of it or by its name.
func (l *listing) isSurelyMLX() bool {
	return l.library == mlx || strings.Contains(strings.ToLower(l.repo), mlx)
}

// with returns the files of the variant and its projector. The first part comes last: without it there is no model.
func (v variant) with(projector remoteFile) choice {
	c := choice{quantization: v.quantization}
	if projector.Path != "" {
		c.files = append(c.files, projector)
	}
	c.files = append(c.files, v.files[1:]...)
	c.files = append(c.files, v.files[0])
	return c
}

func chooseVariant(repo string, all []variant, projectors []remoteFile, w wish, m machine) (variant, error) {
	switch {
	case w.file != "":
		return chooseFile(repo, all, w)
	case w.quantization != "":
		return chooseQuantization(repo, all, w.quantization)
	}
	if i := slices.IndexFunc(all, func(v variant) bool { return m.have(v.with(projectorFor(v, projectors)).files) }); i >= 0 {
		return all[i], nil // don't download another variant of what is on disk
	}
	for _, v := range all {
		total := v.size() + projectorFor(v, projectors).Size
		if m.memory <= 0 || needs(total) <= m.memory {
			return v, nil
		}
	}
	return variant{}, errorf(TooLarge,
		"No variant of %s fits this machine's %s for models. There are: %s. To download one all the same, give the model's URL with a quantization.",
		repo, sized(m.memory), list(all)).about("model")
}

func chooseFile(repo string, all []variant, w wish) (variant, error) {
	for _, v := range all {
		if !slices.ContainsFunc(v.files, func(f remoteFile) bool { return f.Path == w.file }) {
			continue
		}
		if w.quantization != "" && normalQuantization(w.quantization) != normalQuantization(v.quantization) {
			return variant{}, errorf(Invalid, "The file %s is %s, but the quantization that was asked for is %s: leave one of them out.",
				w.file, v.label(), w.quantization).about("quantization")
		}
		return v, nil
	}
	switch role := roleOf(w.file); role {
	case "":
	case filename.Projector:
		return variant{}, errorf(Invalid, "%s is a projector, no model: it comes along with any model of %s.", w.file, repo).about("model")
	default:
		return variant{}, errorf(Invalid, "%s is no model, but a file for one (%s). There are: %s.", w.file, role, list(all)).about("model")
	}
	return variant{}, errorf(ModelNotFound, "%s has no model in a file %s. There are: %s.", repo, w.file, list(all)).about("model")
}

func chooseQuantization(repo string, all []variant, asked string) (variant, error) {
	want := normalQuantization(asked)
	var near []variant
	for _, exact := range []bool{true, false} {
		for _, v := range all {
			have := normalQuantization(v.quantization)
			if have == want || !exact && (strings.TrimPrefix(have, "UD-") == want || have == want+"_MOE" || strings.EqualFold(v.name, asked)) {
				near = append(near, v)
			}
		}
		if len(near) > 0 {
			break
		}
	}
	switch len(near) {
	case 0:
		return variant{}, errorf(Invalid, "%s has no quantization %q. There are: %s.", repo, asked, list(all)).about("quantization")
	case 1:
		return near[0], nil
	}
	var names []string
	for _, v := range near {
		names = append(names, v.files[0].Path)
	}
	return variant{}, errorf(Invalid, "%s has several models of the quantization %s: %s. Give the URL of one of the files.",
		repo, asked, strings.Join(names, ", ")).about("quantization")
}

// mlxEndings are the extensions of files that an engine reads of an MLX model. Other files in a repository, such as the same
// weights in other formats, aren't downloaded.
var mlxEndings = []string{".safetensors", ".json", ".jsonl", ".txt", ".jinja", ".model", ".tiktoken", ".py"}

// chooseMLX picks the files of an MLX repository, which holds one model.
func chooseMLX(l listing, w wish, m machine) (choice, error) {
	repo, files := l.repo, l.files
	config := slices.IndexFunc(files, func(f remoteFile) bool { return f.Path == "config.json" })
	if config < 0 || !slices.ContainsFunc(files, isWeight) {
		lacks := "neither GGUF files nor safetensors with a config.json"
		if !m.runs(catalog.FormatGGUF) {
			lacks = "no safetensors with a config.json, which is what this machine has an engine for"
		}
		return choice{}, errorf(ModelNotFound, "%s holds no model that can be run here: %s.", repo, lacks).about("model")
	}
	if !m.runs(catalog.FormatMLX) {
		return choice{}, errorf(NotImplemented, "%s holds no GGUF files, and this machine has no engine for the others. Look for a repository of the same model whose name ends in -GGUF.", repo).about("model")
	}
	if l.library != "" && !l.isSurelyMLX() {
		return choice{}, errorf(ModelNotFound, "%s holds no GGUF files, and its safetensors are for %s, not for MLX. Look for a repository of the same model whose name ends in -GGUF, or one of mlx-community.",
			repo, l.library).about("model")
	}
	c := choice{quantization: mlxQuantization(repo)}
	if w.quantization != "" && normalQuantization(w.quantization) != normalQuantization(c.quantization) {
		whole := strings.TrimSuffix("it is one model as a whole, "+c.quantization, ", ")
		return choice{}, errorf(Invalid, "%s has no quantization %q: %s.", repo, w.quantization, whole).about("quantization")
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
		c.files = append(c.files, f)
	}
	c.files = append(c.files, files[config]) // without it there is no model
	if m.memory > 0 && needs(total) > m.memory && w.quantization == "" {
		return choice{}, errorf(TooLarge, "%s has %s of weights, which don't fit this machine's %s for models. Look for one with fewer bits, or fewer parameters.",
			repo, sized(total), sized(m.memory)).about("model")
	}
	return c, nil
}

// isWeight reports whether the engine would load a file of a repository as weights.
func isWeight(f remoteFile) bool {
	return path.Ext(f.Path) == ".safetensors" && strings.HasPrefix(f.Path, "model") && !strings.Contains(f.Path, "/")
}

// mlxQuantization returns the quantization that a repository's name contains, such as 4bit.
func mlxQuantization(repo string) string {
	if m := bitsWord.FindStringSubmatch(repo); m != nil {
		return m[1] + "bit"
	}
	return filename.LastQuantization(path.Base(repo))
}
