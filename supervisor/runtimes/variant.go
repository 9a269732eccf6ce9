package runtimes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The variants that are chosen by hardware. A release may have others, which must be requested.
const (
	variantCPU    = "cpu"
	variantVulkan = "vulkan"
	variantCUDA   = "cuda"
	variantMetal  = "metal"
)

// turing is the lowest compute capability that CUDA 13 supports.
var turing = dotted{7, 5}

var (
	// archiveName parses names such as llama-b11669-bin-ubuntu-vulkan-x64.tar.gz and llama-b11669-bin-macos-arm64.tar.gz.
	archiveName = regexp.MustCompile(`^llama-b\d+-bin-(ubuntu|macos|win)(?:-([a-z]+)(?:-([\w.-]+?))?)?-(x64|arm64)\.(?:zip|tar\.gz)$`)
	// cudaLibraries parses the names of archives with CUDA's libraries, which contain the build's tag on Linux only.
	cudaLibraries = regexp.MustCompile(`^cudart-llama-(?:b\d+-)?bin-(ubuntu|win)-cuda-([\d.]+)-(x64|arm64)\.(?:zip|tar\.gz)$`)
)

// build is a build of the engine in a release.
type build struct {
	variant   string
	toolkit   dotted // CUDA version of a CUDA build
	archive   asset
	libraries *asset // CUDA's libraries; nil if the release lacks them
}

// preference returns the variants for this hardware, best first.
func (h hardware) preference() []string {
	if h.os == "darwin" {
		return []string{variantMetal, variantCPU}
	}
	var order []string
	if h.nvidia != nil {
		order = append(order, variantCUDA)
	}
	if h.vulkan {
		order = append(order, variantVulkan)
	}
	return append(order, variantCPU)
}

// buildsFor returns the builds of a release for an operating system and architecture.
func (r release) buildsFor(goos, goarch string) []build {
	system := map[string]string{"linux": "ubuntu", "darwin": "macos", "windows": "win"}[goos]
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	var builds []build
	for _, a := range r.assets {
		match := archiveName.FindStringSubmatch(a.name)
		if match == nil || match[1] != system || match[4] != arch {
			continue
		}
		b := build{variant: match[2], archive: a}
		switch {
		case b.variant == variantCUDA:
			b.toolkit, _ = parseDotted(match[3])
			b.libraries = r.librariesFor(system, match[3], arch)
		case b.variant == "" && goos == "darwin" && goarch == "arm64":
			b.variant = variantMetal // the only macOS build for Apple silicon uses the GPU
		case b.variant == "":
			b.variant = variantCPU
		}
		builds = append(builds, b)
	}
	return builds
}

func (r release) librariesFor(system, toolkit, arch string) *asset {
	for i, a := range r.assets {
		match := cudaLibraries.FindStringSubmatch(a.name)
		if match != nil && match[1] == system && match[2] == toolkit && match[3] == arch {
			return &r.assets[i]
		}
	}
	return nil
}

// choose returns the builds to try, best first; only one if a variant was requested.
func (h hardware) choose(r release, want string) ([]build, error) {
	offered := r.buildsFor(h.os, h.arch)
	if len(offered) == 0 {
		return nil, &sourceError{fmt.Errorf("release %s has no build for %s/%s", r.tag, h.os, h.arch)}
	}
	byVariant := map[string][]build{}
	var names []string
	for _, b := range offered {
		if byVariant[b.variant] == nil {
			names = append(names, b.variant)
		}
		byVariant[b.variant] = append(byVariant[b.variant], b)
	}
	if want != "" {
		if byVariant[want] == nil {
			slices.Sort(names)
			return nil, &wishError{fmt.Sprintf("release %s has no variant %q for %s/%s; it has: %s",
				r.tag, want, h.os, h.arch, strings.Join(names, ", "))}
		}
		return []build{h.pick(byVariant[want])}, nil
	}
	var chosen []build
	for _, variant := range h.preference() {
		fitting := byVariant[variant]
		if variant == variantCUDA {
			fitting = h.fittingCUDA(fitting)
		}
		if len(fitting) > 0 {
			chosen = append(chosen, fitting[0])
		}
	}
	if len(chosen) == 0 {
		return nil, &sourceError{fmt.Errorf("release %s has no build that fits this hardware; it has: %s", r.tag, strings.Join(names, ", "))}
	}
	return chosen, nil
}

// pick chooses among the builds of the requested variant.
func (h hardware) pick(builds []build) build {
	gpu := h.nvidia
	if gpu == nil {
		gpu = &nvidia{}
	}
	if builds[0].variant == variantCUDA {
		if best, ok := gpu.pickCUDA(builds); ok {
			return best
		}
	}
	return builds[0]
}

// fittingCUDA returns the CUDA build for this GPU, if there is one. It ignores builds without CUDA's libraries, which would
// start but compute on the CPU.
func (h hardware) fittingCUDA(builds []build) []build {
	builds = slices.DeleteFunc(slices.Clone(builds), func(b build) bool { return b.libraries == nil })
	if best, ok := h.nvidia.pickCUDA(builds); ok {
		return []build{best}
	}
	return nil
}

// pickCUDA chooses among builds for different CUDA versions: the newest that the driver supports, or else one of the driver's
// major version, which works as well. It reports false if the GPU can't run any of them.
func (n *nvidia) pickCUDA(builds []build) (build, bool) {
	var newest, nearest, oldest *build
	for i := range builds {
		b := &builds[i]
		if (n.capability != dotted{}) && n.capability.compare(turing) < 0 && b.toolkit.major >= 13 {
			continue
		}
		if oldest == nil || b.toolkit.compare(oldest.toolkit) < 0 {
			oldest = b
		}
		if b.toolkit.compare(n.cuda) <= 0 && (newest == nil || b.toolkit.compare(newest.toolkit) > 0) {
			newest = b
		}
		if b.toolkit.major == n.cuda.major && (nearest == nil || b.toolkit.compare(nearest.toolkit) < 0) {
			nearest = b
		}
	}
	switch {
	case newest != nil:
		return *newest, true
	case nearest != nil:
		return *nearest, true
	case oldest != nil && n.cuda == dotted{}: // the driver is unknown, and the oldest version requires the least
		return *oldest, true
	default:
		return build{}, false
	}
}
