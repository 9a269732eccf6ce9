package runtimes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// serverPackage is the package that contains llama-server, and rpcPackage that with its backend for --rpc, if the suite has it.
const (
	serverPackage = "llama.cpp-tools"
	rpcPackage    = "libggml0-backend-rpc"
)

// packageSuites are the suites that have the package, the more stable one first. Installing from them would upgrade the C library
// of an older system, so packages are unpacked into a folder of their own, with all libraries that they need.
var packageSuites = []string{"forky", "sid"}

// packageSource gets an engine from a distribution's packages, in one variant. It keeps what it has fetched for the next variant.
type packageSource func(ctx context.Context, variant string) (staged, error)

// distributionPackages returns a function that opens the distribution's packages for one Get; nil if there are none.
func distributionPackages() func(packageOptions) (packageSource, error) {
	if runtime.GOOS != "linux" {
		return nil
	}
	return func(o packageOptions) (packageSource, error) {
		for _, tool := range []string{"apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb"} {
			if _, err := exec.LookPath(tool); err != nil {
				return nil, fmt.Errorf("not a Debian-family system: there is no %s", tool)
			}
		}
		return (&debian{packageOptions: o, suites: map[string]*aptSuite{}}).get, nil
	}
}

type packageOptions struct {
	stage     *staging
	installed packaged
	report    func(Progress)
	gpu       *nvidia // for which code is needed that its driver can run; nil: any code will do
}

// packaged returns the name of the installed runtime of a variant that was made from a package, named with its version, or "".
type packaged func(pkg, variant string) string

// debian gets an engine from packages of a Debian-family system, with apt configurations of its own.
type debian struct {
	packageOptions
	sources []aptSource          // of the machine; nil: not yet read
	suites  map[string]*aptSuite // by their keys
}

func (d *debian) get(ctx context.Context, variant string) (staged, error) {
	wanted := debianVariants[variant]
	if d.sources == nil {
		var err error
		if d.sources, err = d.machineSources(ctx); err != nil {
			return staged{}, err
		}
	}
	var failures []error
	for _, name := range packageSuites {
		suite, err := d.suite(ctx, name, wanted.components)
		if err == nil {
			if name := d.installed(suite.pkg, variant); name != "" {
				return staged{installed: name}, nil
			}
			err = d.fetch(ctx, suite, wanted)
		}
		if ctx.Err() != nil {
			return staged{}, context.Cause(ctx)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", name, errors.Join(suite.listErr, err)))
			continue
		}
		return d.build(ctx, suite, variant)
	}
	return staged{}, errors.Join(failures...)
}

// fetch downloads the packages of a variant. Those that every variant needs are downloaded once, when it is known that there are
// the others.
func (d *debian) fetch(ctx context.Context, suite *aptSuite, wanted debianVariant) error {
	backend, err := d.backend(ctx, suite, wanted)
	if err != nil {
		return err
	}
	if suite.engine == nil {
		packages := []string{serverPackage}
		if _, err := d.version(ctx, suite, rpcPackage); err == nil {
			packages = append(packages, rpcPackage)
		}
		needed, err := d.needed(ctx, suite, packages...)
		if err == nil {
			err = d.download(ctx, suite, engineFolder, needed)
		}
		if err != nil {
			return err
		}
		suite.engine = needed
	}
	if len(backend) == 0 {
		return nil
	}
	backend = slices.DeleteFunc(backend, func(pkg string) bool { return slices.Contains(suite.engine, pkg) })
	return d.download(ctx, suite, backendFolder, backend)
}

// backend returns the packages of a variant's backend, and notes the version of CUDA that they are for.
func (d *debian) backend(ctx context.Context, suite *aptSuite, wanted debianVariant) ([]string, error) {
	if len(wanted.packages) == 0 {
		return nil, nil
	}
	if _, err := d.version(ctx, suite, wanted.packages[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", wanted.packages[0], err)
	}
	needed, err := d.needed(ctx, suite, wanted.packages...)
	if err != nil {
		return nil, err
	}
	suite.toolkit, err = d.toolkit(ctx, suite, needed)
	return needed, err
}

// build unpacks the packages of a variant and makes them startable.
func (d *debian) build(ctx context.Context, suite *aptSuite, variant string) (staged, error) {
	folders := []string{engineFolder}
	if len(debianVariants[variant].packages) > 0 {
		folders = append(folders, backendFolder)
	}
	root, err := d.stage.folder("root")
	if err == nil {
		err = d.unpack(ctx, suite.files(folders...), root)
	}
	if err != nil {
		return staged{}, err
	}
	script, err := makeStartable(root, variant)
	if err != nil {
		return staged{}, err
	}
	return staged{
		root: root, executable: script, variant: variant,
		origin: "Debian's packages, " + suite.name, pkg: suite.pkg, toolkit: suite.toolkit,
	}, nil
}

func (d *debian) machineSources(ctx context.Context) ([]aptSource, error) {
	output, err := d.run(ctx, "", nil, "apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, "'")
		switch name {
		case "LIST":
			files = append(files, value)
		case "PARTS":
			lists, _ := filepath.Glob(filepath.Join(value, "*.list"))
			stanzas, _ := filepath.Glob(filepath.Join(value, "*.sources"))
			files = append(files, append(lists, stanzas...)...)
		}
	}
	var sources []aptSource
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // often there is no sources.list
		}
		if strings.HasSuffix(file, ".sources") {
			sources = append(sources, parseSources(string(text))...)
		} else {
			sources = append(sources, parseSourcesList(string(text))...)
		}
	}
	own := debianOwn(sources)
	if len(own) == 0 {
		return nil, errors.New("apt's configuration has no entry for Debian's main archive")
	}
	return own, nil
}

// unpack unpacks packages into one tree. It doesn't run their scripts.
func (d *debian) unpack(ctx context.Context, files []string, root string) error {
	if len(files) == 0 {
		return errors.New("apt fetched no packages")
	}
	for i, file := range files {
		d.report(Progress{Doing: "unpacking the packages", Percent: 100 * float64(i) / float64(len(files))})
		if _, err := d.run(ctx, d.stage.path, nil, "dpkg-deb", "-x", file, root); err != nil {
			return err
		}
	}
	return nil
}

func (d *debian) percent(doing string) func(float64) {
	return func(percent float64) { d.report(Progress{Doing: doing, Percent: percent}) }
}

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

// unwanted matches the libraries that aren't taken from the packages though something depends on them: those of NVIDIA's driver, and a BLAS
// that is slower than OpenBLAS.
var unwanted = regexp.MustCompile(`^(libcuda1|libnvidia-|libblas3)`)

// packageVariants returns the variants of Debian's packages to try, best first; only one if a variant was requested.
func (h hardware) packageVariants(want string) ([]string, error) {
	switch {
	case want == "rocm":
		return []string{variantHIP}, nil
	case want != "":
		if _, ok := debianVariants[want]; !ok {
			return nil, fmt.Errorf("they have no variant %q, they have: %s",
				want, strings.Join(slices.Sorted(maps.Keys(debianVariants)), ", "))
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
		return toolkit, &unfitError{fmt.Errorf("they need CUDA %s, and this machine's driver supports CUDA %s at most: update the driver",
			toolkit, d.gpu.cuda)}
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
