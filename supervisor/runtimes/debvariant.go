package runtimes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The variants that only packages have, or that they call so.
const (
	variantHIP  = "hip"  // the releases call it rocm
	variantBLAS = "blas" // the processor, by way of OpenBLAS
)

// debianVariant is what a variant needs in addition to the packages that all need.
type debianVariant struct {
	components string
	packages   []string // the first one has the backend
}

// debianVariants are the variants that Debian's packages come in. Each backend needs exactly the version of ggml of its own suite.
var debianVariants = map[string]debianVariant{
	variantCPU:    {components: "main"},
	variantVulkan: {components: "main", packages: []string{"libggml0-backend-vulkan"}},
	// CUDA's own libraries are in non-free.
	variantCUDA: {components: "main contrib non-free", packages: []string{"libggml0-backend-cuda"}},
	variantHIP:  {components: "main", packages: []string{"libggml0-backend-hip"}},
	variantBLAS: {components: "main", packages: []string{"libggml0-backend-blas", "libopenblas0-pthread"}},
}

// isUnwanted reports whether a library isn't taken from the packages though something depends on it: the libraries of NVIDIA's driver, and a BLAS
// that is slower than OpenBLAS.
func isUnwanted(pkg string) bool {
	return strings.HasPrefix(pkg, "libcuda1") || strings.HasPrefix(pkg, "libnvidia-") || strings.HasPrefix(pkg, "libblas3")
}

// packageVariants returns the variants of Debian's packages to try, best first; only one if a variant was requested.
func (h hardware) packageVariants(want string) ([]string, error) {
	switch {
	case want == "rocm":
		return []string{variantHIP}, nil
	case want != "":
		if _, ok := debianVariants[want]; !ok {
			return nil, fmt.Errorf("they have no variant %q, they have: %s", want, strings.Join(slices.Sorted(maps.Keys(debianVariants)), ", "))
		}
		return []string{want}, nil
	}
	h.vulkan = h.gpu || h.nvidia != nil // its loader is one of the packages
	return h.preference(), nil
}

// toolkit returns the version of CUDA that packages are for. It is an error if the driver is older than its major version.
func (d *debian) toolkit(ctx context.Context, s *aptSuite, packages []string) (dotted, error) {
	i := slices.IndexFunc(packages, func(pkg string) bool { return strings.HasPrefix(pkg, "libcudart") })
	if i < 0 {
		return dotted{}, nil
	}
	version, err := d.version(ctx, s, packages[i])
	if err != nil {
		return dotted{}, err
	}
	toolkit := toolkitOf(version)
	if d.gpu != nil && d.gpu.cuda != (dotted{}) && d.gpu.cuda.major < toolkit.major {
		return toolkit, &unfitError{fmt.Errorf("they need CUDA %s, and this machine's driver supports CUDA %s at most: update the driver", toolkit, d.gpu.cuda)}
	}
	return toolkit, nil
}

// toolkitOf returns the version of CUDA in a package's version, such as "12.4.127~12.4.1-8".
func toolkitOf(version string) dotted {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return dotted{}
	}
	toolkit, _ := parseDotted(parts[0] + "." + parts[1])
	return toolkit
}
