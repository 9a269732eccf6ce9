package catalog

import "github.com/lmcaddy/lmcaddy/internal/filename"

// projector is a file that adds vision or audio to a model.
type projector struct {
	path, label string
	size        int64
	vision      bool // it is for images, not only for audio
}

// scope holds the files that may belong together.
type scope struct {
	flat       bool // the files may be of several repositories
	projectors []projector
	labels     []string        // of models
	names      map[string]bool // of models; set when needed
}

// projector returns the projector for a model: one with the model's name, or else one without a name if the scope is a single
// repository. It prefers the smallest. It returns the zero value if there is none.
func (s *scope) projector(label string) projector {
	if len(s.projectors) == 0 {
		return projector{}
	}
	if s.names == nil {
		s.names = map[string]bool{}
		for _, l := range s.labels {
			s.names[filename.ModelName(l)] = true
		}
	}
	name := filename.ModelName(label)
	named := smallest(s.projectors, func(p projector) bool { return name != "" && filename.ProjectorName(p.label) == name })
	if named.path != "" || s.flat && len(s.names) > 1 {
		return named
	}
	return smallest(s.projectors, func(p projector) bool { return !s.names[filename.ProjectorName(p.label)] })
}

func smallest(all []projector, fits func(projector) bool) projector {
	var best projector
	for _, p := range all {
		if fits(p) && (best.path == "" || p.size < best.size) {
			best = p
		}
	}
	return best
}
