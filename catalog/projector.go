package catalog

import "github.com/lmcaddy/lmcaddy/internal/filename"

// projector is the file with which a model sees or hears.
type projector struct {
	path, label string
	size        int64
	vision      bool // it is for images, and not for sound only
}

// scope is what lies together, and may belong together.
type scope struct {
	flat       bool // what lies there may be of any repository
	projectors []projector
	labels     []string        // of the models
	names      map[string]bool // of the models, once they are wanted
}

// projector is the one for a model of the scope: one that is named after it, else one that could be anyone's, if all that
// lies there is of one repository. The smallest of several will do. It is the zero value if there is none.
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
