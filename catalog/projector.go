package catalog

import (
	"regexp"
	"strings"
)

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

var (
	projectorWord      = regexp.MustCompile(`(?i)(^|[-._])mmproj([-._]model)?([-._]|$)`)
	quantizationEnding = regexp.MustCompile(`(?i)(^|[-._])(UD-)?([IT]?Q\d\w*|BF16|F16|F32|MXFP4\w*|NVFP4\w*)$`)
)

// modelName is what a file's name says of the model, which a projector's name may repeat.
func modelName(label string) string {
	return strings.ToLower(quantizationEnding.ReplaceAllString(label, ""))
}

// projectorName is the name of the model that a projector is for; empty if its own name doesn't tell.
func projectorName(label string) string {
	name := strings.Trim(projectorWord.ReplaceAllString(modelName(label), "$1$3"), "-._")
	return quantizationEnding.ReplaceAllString(name, "")
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
			s.names[modelName(l)] = true
		}
	}
	name := modelName(label)
	named := smallest(s.projectors, func(p projector) bool { return name != "" && projectorName(p.label) == name })
	if named.path != "" || s.flat && len(s.names) > 1 {
		return named
	}
	return smallest(s.projectors, func(p projector) bool { return !s.names[projectorName(p.label)] })
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
