package catalog

import (
	"path/filepath"
	"regexp"
	"strings"
)

// projector is a vision projector's file.
type projector struct {
	path string
	size int64
}

// folder is what lies together, and may belong together.
type folder struct {
	flat       bool // a root: what lies there is of any repository
	projectors []projector
	names      map[string]bool // of the models
}

var (
	projectorWord      = regexp.MustCompile(`(?i)(^|[-._])mmproj([-._]model)?([-._]|$)`)
	quantizationEnding = regexp.MustCompile(`(?i)(^|[-._])(UD-)?(I?Q\d\w*|BF16|F16|F32|MXFP4\w*)$`)
)

// modelName is what a file's name says of the model, which a projector's name may repeat.
func modelName(path string) string {
	return strings.ToLower(quantizationEnding.ReplaceAllString(stem(path), ""))
}

// projectorName is the name of the model that a projector is for; empty if its own name doesn't tell.
func projectorName(path string) string {
	name := strings.Trim(projectorWord.ReplaceAllString(modelName(path), "$1$3"), "-._")
	return quantizationEnding.ReplaceAllString(name, "")
}

// projector is the path of the projector for a model in the folder: one that is named after it, else one that could be
// anyone's, if all that lies there is of one repository. The smallest of several will do. It is empty if there is none.
func (f *folder) projector(model string) string {
	name := modelName(model)
	named := smallest(f.projectors, func(p projector) bool { return name != "" && projectorName(p.path) == name })
	if named != "" || f.flat && len(f.names) > 1 {
		return named
	}
	return smallest(f.projectors, func(p projector) bool { return !f.names[projectorName(p.path)] })
}

func smallest(all []projector, fits func(projector) bool) string {
	var best projector
	for _, p := range all {
		if fits(p) && (best.path == "" || p.size < best.size) {
			best = p
		}
	}
	return best.path
}

// folderOf is what is known of the folder that a file lies in.
func (w *walk) folderOf(path string) *folder {
	dir := filepath.Dir(path)
	f := w.folders[dir]
	if f == nil {
		f = &folder{flat: dir == filepath.Clean(w.root), names: map[string]bool{}}
		w.folders[dir] = f
	}
	return f
}
