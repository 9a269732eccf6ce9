package engine

import (
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// What an engine sees of our environment: what it needs to find its libraries, its devices and its temporary files. The
// rest stays out, since engines take options from variables, and since ours may hold secrets.
var (
	passedNames    = []string{"HOME", "USER", "LANG", "TMPDIR", "TMP", "TEMP", "TZ", "SYSTEMROOT", "WINDIR", "COMSPEC", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"}
	passedPrefixes = []string{"LC_", "DYLD_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "AMD_", "VK_", "MESA_", "OMP_", "MTL_", "GGML_"}
)

// noPath is a PATH on which nothing is found. Without any, programs are looked for in /bin and /usr/bin.
const noPath = "PATH=/dev/null"

// Environment is what an engine is started with, of our own environment. It has no way to helpers such as ffprobe, to which
// llama-server would hand what clients have sent. A start script gets no PATH at all: its shell has one of its own, which is
// not for what the script starts.
func Environment(isScript bool) []string { return passed(os.Environ(), runtime.GOOS, isScript) }

func passed(all []string, system string, isScript bool) []string {
	var env []string
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		isPath := name == "PATH" && system == "windows" // where libraries are found by it
		if isPath || slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			env = append(env, v)
		}
	}
	if system != "windows" && !isScript {
		env = append(env, noPath)
	}
	return env
}

// IsScript tells whether an executable is a script, which is started by way of another program.
func IsScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 2)
	_, err = io.ReadFull(file, begin)
	return err == nil && string(begin) == "#!"
}
