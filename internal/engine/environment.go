package engine

import (
	"os"
	"slices"
	"strings"
)

// What an engine sees of our environment: what it needs to find its libraries, its devices and its temporary files. The
// rest stays out, since engines take options from variables, and since ours may hold secrets.
var (
	passedNames    = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "TMP", "TEMP", "TZ", "SYSTEMROOT", "WINDIR", "COMSPEC", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"}
	passedPrefixes = []string{"LC_", "DYLD_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "AMD_", "VK_", "MESA_", "OMP_", "MTL_", "GGML_"}
)

// Environment is what an engine is started with, of our own environment.
func Environment() []string { return passed(os.Environ()) }

func passed(all []string) []string {
	var env []string
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		if slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			env = append(env, v)
		}
	}
	return env
}
