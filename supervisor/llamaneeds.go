package supervisor

import (
	"cmp"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/sandbox"
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

// needs is what a launch needs beside the engine itself: the files of the model, and the machines that the operator's arguments
// have take part in the computing.
func (l Launch) needs() sandbox.Rules {
	var r sandbox.Rules
	for _, path := range []string{l.Model.Path, l.Model.Projector} {
		if path != "" {
			r.Read = append(r.Read, path)
		}
	}
	if l.Draft != nil {
		r.Read = append(r.Read, l.Draft.Path)
	}
	for i, arg := range l.Args {
		if arg == "--rpc" && i+1 < len(l.Args) {
			r.Connect = append(r.Connect, ports(l.Args[i+1])...)
		}
	}
	return r
}

// ports are those of a list such as "10.0.0.7:50052,10.0.0.8:50052".
func ports(list string) []int {
	var all []int
	for address := range strings.SplitSeq(list, ",") {
		_, port, err := net.SplitHostPort(address)
		if n, bad := strconv.Atoi(port); err == nil && bad == nil && n > 0 && n < 1<<16 {
			all = append(all, n)
		}
	}
	return all
}
