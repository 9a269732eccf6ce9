package catalog

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Companion is a file that belongs to models, such as a projector or a drafter. It is never listed or loaded as a model.
type Companion struct {
	Model          // its Key is that of its repository, followed by @ and the name of its file
	Of    []string // the keys of the models that it may belong to, sorted
}

// roleOther is that of files for which there is no engine here, such as models for images. They are no companions either.
const roleOther = "other"

// vocoders are architectures that make sound of tokens, and others those that generate something else than text, and encoders for these.
var (
	vocoders = []string{"wavtokenizer-dec", "snac-dec"}
	others   = []string{
		"diffusion", "flux", "sd1", "sd2", "sd3", "sdxl", "wan", "qwen_image", "lumina2", "aura", "hidream", "ltxv", "hyvid", "cosmos",
		"pig", "whisper", "t5encoder",
	}
)

// roleOf returns the role that a file's header gives it; "" for a model.
func roleOf(f *gguf.GGUFFile) string {
	arch, kind := text(f, "general.architecture"), text(f, "general.type")
	switch {
	case arch == "clip", kind == "mmproj":
		return filename.Projector
	case kind == "adapter", kind == "controlvector", arch == "controlvector":
		return filename.Adapter
	case kind == "imatrix":
		return filename.Importance
	case slices.Contains(vocoders, arch):
		return filename.Vocoder
	case kind == "vocab":
		return filename.Vocabulary
	case kind != "" && kind != "model", slices.Contains(others, arch), len(f.TensorInfos) == 0:
		return roleOther
	case drafting(f) != "":
		return filename.Drafter
	default:
		return ""
	}
}

// nextTokens is in the names of tensors by which a model predicts several tokens.
const nextTokens = ".nextn."

// drafting returns how a file that can only draft does so, in the words of llama.cpp's --spec-type; "" for a whole model. A model that
// predicts several tokens has its layers for that behind all others; published alone, they are a drafter.
func drafting(f *gguf.GGUFFile) string {
	arch := text(f, "general.architecture")
	switch {
	case arch == "eagle3":
		return arch
	case arch == "dflash":
		if kv, ok := f.Header.MetadataKV.Get("dflash.has_confidence_head"); ok && kv.ValueType == gguf.GGUFMetadataValueTypeBool &&
			kv.ValueBool() {
			return "dspark"
		}
		return arch
	case strings.HasSuffix(arch, "-assistant"):
		return "mtp"
	}
	predicts, hasFirst := false, false
	for i := range f.TensorInfos {
		name := f.TensorInfos[i].Name
		predicts = predicts || strings.Contains(name, nextTokens)
		hasFirst = hasFirst || strings.HasPrefix(name, "blk.0.")
	}
	if predicts && !hasFirst {
		return "mtp"
	}
	return ""
}

// scope holds the files that may belong together.
type scope struct {
	flat       bool // the files may be of several repositories
	companions []companion
	labels     []string        // of models
	names      map[string]bool // of models; set when needed
}

// companion is a file of a scope that isn't a model.
type companion struct {
	*found
	vision, audio bool // of a projector: what it is for
}

// scopesOf returns the scopes of a root. What only the name of a file says of its role is true beside a model.
func scopesOf(w *walk, headers map[string]header) map[string]*scope {
	scopes := map[string]*scope{}
	perhaps := map[*found]string{} // roles by name alone
	for i := range w.found {
		f := &w.found[i]
		s := scopes[f.scope]
		if s == nil {
			s = &scope{flat: f.flat}
			scopes[f.scope] = s
		}
		h := headers[f.path]
		f.role = h.model.Role
		role := "" // that the name gives it, if that isn't for its header to say
		if f.format == FormatGGUF && f.layout != LayoutOllama && h.model.Err == nil && f.problem == nil {
			if named, isSure := filename.Companion(f.path); !isSure {
				role = named
			}
		}
		switch {
		case f.role != "":
			s.companions = append(s.companions, companion{f, h.model.Vision, h.model.Audio})
		case role != "":
			perhaps[f] = role
		case f.problem == nil && h.model.Err == nil:
			s.labels = append(s.labels, f.label)
		}
	}
	for i := range w.found {
		f := &w.found[i]
		if role, ok := perhaps[f]; ok && scopes[f.scope].hasModelFor(f.label) {
			f.role = role
			scopes[f.scope].companions = append(scopes[f.scope].companions, companion{found: f})
		}
	}
	return scopes
}

// hasModelFor reports whether there is a model that a companion may belong to, by the companion's label.
func (s *scope) hasModelFor(label string) bool {
	if !s.flat {
		return len(s.labels) > 0
	}
	name := filename.CompanionName(label)
	return name != "" && slices.ContainsFunc(s.labels, func(l string) bool { return strings.HasPrefix(filename.ModelName(l), name) })
}

// projector returns the projector for a model: one with the model's name, or else one without a name if the scope is a single
// repository. It prefers the smallest. It returns the zero value if there is none.
func (s *scope) projector(label string) companion {
	if len(s.companions) == 0 {
		return companion{}
	}
	if s.names == nil {
		s.names = map[string]bool{}
		for _, l := range s.labels {
			s.names[filename.ModelName(l)] = true
		}
	}
	name := filename.ModelName(label)
	named := s.smallestProjector(func(label string) bool { return name != "" && filename.CompanionName(label) == name })
	if named.found != nil || s.flat && len(s.names) > 1 {
		return named
	}
	return s.smallestProjector(func(label string) bool { return !s.names[filename.CompanionName(label)] })
}

func (s *scope) smallestProjector(fits func(label string) bool) companion {
	var best companion
	for _, c := range s.companions {
		if c.role == filename.Projector && fits(c.label) && (best.found == nil || c.size < best.size) {
			best = c
		}
	}
	return best
}

func (c *companion) belongsTo(s *scope, label string) bool {
	switch {
	case c.role == filename.Projector:
		return s.projector(label).found == c.found
	case s.flat:
		name := filename.CompanionName(c.label)
		return name != "" && strings.HasPrefix(filename.ModelName(label), name)
	default:
		return true
	}
}

func companionsOf(scopes map[string]*scope, headers map[string]header, models map[string][]labelled) []Companion {
	var all []Companion
	for name, s := range scopes {
		for i := range s.companions {
			c := &s.companions[i]
			role := c.role
			switch {
			case role == roleOther && c.format == FormatMLX:
				role = filename.Safetensors
			case role == roleOther:
				continue
			}
			m := modelOf(c.found, headers[c.path], s)
			m.Role, m.Projector = role, ""
			m.Key += "@" + unsafeInKeys.Replace(Normal(c.label))
			companion := Companion{Model: m.Model}
			for _, other := range models[name] {
				if other.Err == nil && c.belongsTo(s, other.label) {
					companion.Of = append(companion.Of, other.Key)
				}
			}
			slices.Sort(companion.Of)
			all = append(all, companion)
		}
	}
	return all
}

// names returns the names by which a companion can be requested.
func (c *Companion) names() []string {
	names := []string{c.Key, Normal(filepath.Base(c.Path)), Normal(filename.Stem(c.Path))}
	if len(c.Of) == 0 { // it is what its repository is for
		repo, _, _ := strings.Cut(c.Key, "@")
		names = append(names, repo)
	}
	for _, name := range names {
		if _, bare, ok := strings.Cut(name, "/"); ok {
			names = append(names, bare)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Companions returns the companions on disk, sorted by key and path. The slice must not be modified. The error is that of [Catalog.Models].
func (c *Catalog) Companions(ctx context.Context) ([]Companion, error) {
	l, err := c.listing(ctx, true)
	if err != nil {
		return nil, err
	}
	return l.companions, nil
}

// maxAdapters bounds how many adapters are loaded with a model.
const maxAdapters = 16

// Adapters returns the LoRA adapters that belong to a model, sorted by key, according to the last scan.
func (c *Catalog) Adapters(m *Model) []Model {
	l := c.last.Load()
	if l == nil {
		return nil
	}
	var all []Model
	for i := range l.companions {
		a := &l.companions[i]
		if a.Role == filename.Adapter && a.Err == nil && a.Architecture != "" && a.Architecture == m.Architecture &&
			slices.Contains(a.Of, m.Key) && len(all) < maxAdapters {
			all = append(all, a.Model)
		}
	}
	return all
}

// Companion finds a companion in a role by its key, or by the name of its file, according to the last scan. Of several with that name it
// takes the one of a model.
func (c *Catalog) Companion(name, role, model string) (Companion, *NotFoundError) {
	missing := &NotFoundError{Name: name}
	l := c.last.Load()
	if l == nil {
		return Companion{}, missing
	}
	var near, beside []Companion
	for _, i := range l.byCompanion[Normal(name)] {
		switch found := l.companions[i]; {
		case found.Role != role:
		case slices.Contains(found.Of, model):
			beside = append(beside, found)
		default:
			near = append(near, found)
		}
	}
	if len(beside) > 0 {
		near = beside
	}
	if len(near) == 1 {
		return near[0], nil
	}
	for _, found := range near {
		missing.Ambiguous = append(missing.Ambiguous, found.Key)
	}
	return Companion{}, missing
}
