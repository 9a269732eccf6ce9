package supervisor

import (
	"cmp"
	"path/filepath"
)

// places are the variables that say where an engine may write.
func (l Launch) places() []string {
	if l.Folder == "" {
		return nil
	}
	env := []string{"TMPDIR=" + l.Folder}
	if l.isConfined() {
		dir := cmp.Or(l.Cache, l.Folder)
		env = append(env, "HOME="+dir, "XDG_CACHE_HOME="+dir, "CUDA_CACHE_PATH="+filepath.Join(dir, "cuda"))
	}
	return env
}

// files are those of the model, which the engine has to read.
func (l Launch) files() []string {
	var files []string
	for _, path := range []string{l.Model.Path, l.Model.Projector} {
		if path != "" {
			files = append(files, path)
		}
	}
	if l.Draft != nil {
		files = append(files, l.Draft.Path)
	}
	return files
}
