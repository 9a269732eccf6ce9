package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func (o *Options) command(m Mark) (*exec.Cmd, error) {
	path, err := find(o.Path, o.Env)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	if o.Dir != "" { // the error of a start wouldn't name it
		if info, err := os.Stat(o.Dir); err != nil {
			return nil, fmt.Errorf("starting %s in its directory: %w", o.Path, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("starting %s: %s isn't a directory", o.Path, o.Dir)
		}
	}
	cmd := exec.Command(path, o.Args...)
	cmd.Env = append(slices.Clone(o.Env), m.Env())
	cmd.Dir = o.Dir
	return cmd, nil
}

// find returns the path of an executable. Unlike exec.LookPath it uses the PATH of env.
func find(name string, env []string) (string, error) {
	if filepath.Base(name) != name {
		return name, nil
	}
	path := os.Getenv("PATH")
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		if key == "PATH" || (runtime.GOOS == "windows" && strings.EqualFold(key, "PATH")) {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // as exec does: what is in the current directory isn't meant
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}
