package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// staged is an engine in a staging folder, ready to be installed.
type staged struct {
	root       string // the folder to install
	executable string // relative to root
	variant    string
	origin     string
	pkg        string // the distribution's package with its version; may be empty
	toolkit    dotted // the version of CUDA that the packages' code is for
	installed  string // if set: the installed runtime that the source would give again
}

func (g *get) checkLlama() error {
	g.version = strings.ToLower(strings.TrimSpace(g.options.Version))
	if _, err := strconv.ParseUint(g.version, 10, 64); err == nil {
		g.version = "b" + g.version
	}
	if g.version != "" && !buildTag.MatchString(g.version) && !versionTag.MatchString(g.version) {
		return fmt.Errorf("%q is not a version of llama.cpp: give a build like b11669 or a release like v0.7.0", g.options.Version)
	}
	if g.options.Index != "" {
		return errors.New("llama.cpp isn't a Python package: give the address of a mirror of its releases, not of a package index")
	}
	return nil
}

// llama gets llama.cpp, from the official release or from the distribution's packages.
func (g *get) llama(ctx context.Context) (Runtime, error) {
	g.from = newRemote(g.options.Releases, g.store.stall)
	defer g.from.close()
	found, err := g.fromRelease(ctx)
	if err == nil || !fallsBack(err) {
		return found, g.explain(err)
	}
	if g.store.packages == nil || ctx.Err() != nil {
		return Runtime{}, g.explain(err)
	}
	return g.fromPackages(ctx)
}

// fromPackages installs the first variant of the distribution's packages that can be used on this machine.
func (g *get) fromPackages(ctx context.Context) (Runtime, error) {
	const what = "distribution's packages"
	err := errors.New("not asked, because they come in one version")
	var variants []string
	machine := g.store.hardware(ctx)
	if g.version == "" {
		variants, err = machine.packageVariants(g.options.Variant)
	}
	var source packageSource
	if err == nil {
		o := packageOptions{stage: g.stage, installed: g.store.packaged, report: g.options.Progress}
		if g.options.Variant == "" {
			o.gpu = machine.nvidia
		}
		source, err = g.store.packages(o)
	}
	if err != nil {
		g.fail(what, err)
		return Runtime{}, g.explain(err)
	}
	for i, variant := range variants {
		var found Runtime
		if found, err = g.fromPackage(ctx, source, variant, machine.nvidia); err == nil {
			return found, nil
		}
		g.fail(what+", "+variant, err)
		if ctx.Err() != nil {
			break
		}
		if i < len(variants)-1 {
			g.store.log.Warn("this variant of the distribution's packages can't be used here, trying the next one",
				"variant", variant, "next", variants[i+1], "error", err)
		}
	}
	return Runtime{}, g.explain(err)
}

func (g *get) fromPackage(ctx context.Context, source packageSource, variant string, gpu *nvidia) (Runtime, error) {
	ready, err := source(ctx, variant)
	if err != nil {
		return Runtime{}, err
	}
	if ready.installed != "" {
		found, err := g.store.load(ready.installed)
		found.Already = true
		return found, err
	}
	if variant == variantCUDA && gpu != nil {
		codes, err := cudaCodes(ready.root)
		if err != nil {
			g.store.log.Warn("it can't be read what GPUs the package's code is for", "error", err)
		}
		if err := g.insist(variant, gpu.fits(codes, ready.toolkit)); err != nil {
			return Runtime{}, err
		}
	}
	return g.install(ctx, ready)
}

// wishError says that the requested version or variant doesn't exist.
type wishError struct{ text string }

func (e *wishError) Error() string { return e.text }

// fallsBack reports whether to try another source after an error. After a wrong checksum, or with an archive that leads out of
// its folder, it returns false: these must not go unnoticed.
func fallsBack(err error) bool {
	_, source := errors.AsType[*sourceError](err)
	_, unfit := errors.AsType[*unfitError](err)
	return source || unfit
}

func (g *get) fail(what string, err error) { g.tried = append(g.tried, Attempt{what, err}) }

func (g *get) explain(err error) error {
	if err == nil || len(g.tried) == 0 {
		return err
	}
	return &GetError{Engine: g.options.Engine, Tried: g.tried}
}

func (g *get) fromRelease(ctx context.Context) (Runtime, error) {
	what := "official release"
	g.options.Progress(Progress{Doing: "asking for the release's files"})
	published, err := g.from.findRelease(ctx, g.version)
	var builds []build
	if err == nil {
		builds, err = g.store.hardware(ctx).choose(published, g.options.Variant)
	}
	if err != nil {
		if _, wish := errors.AsType[*wishError](err); !wish { // it needs no explanation
			g.fail(what, err)
		}
		return Runtime{}, err
	}
	for _, b := range builds {
		var found Runtime
		if found, err = g.build(ctx, published, b); err == nil {
			return found, nil
		}
		g.fail(fmt.Sprintf("%s %s, %s", what, published.tag, b.variant), err)
		if _, unfit := errors.AsType[*unfitError](err); !unfit {
			return Runtime{}, err
		}
		g.store.log.Warn("this build doesn't run here", "build", b.archive.name, "error", err)
	}
	return Runtime{}, err
}

func (g *get) build(ctx context.Context, published release, b build) (Runtime, error) {
	if found, err := g.store.load(runtimeName(LlamaCpp, published.tag, b.variant)); err == nil {
		found.Already = true
		return found, nil
	}
	root, err := g.fetch(ctx, b.archive, "root")
	if err != nil {
		return Runtime{}, err
	}
	executable, err := findServer(root)
	if err != nil {
		return Runtime{}, fmt.Errorf("%s: %w", b.archive.name, err)
	}
	if b.libraries != nil {
		libraries, err := g.fetch(ctx, *b.libraries, "libraries")
		if err != nil {
			return Runtime{}, err
		}
		if err := moveLibraries(libraries, filepath.Join(root, filepath.Dir(executable))); err != nil {
			return Runtime{}, err
		}
	}
	return g.install(ctx, staged{
		root: root, executable: executable, variant: b.variant, origin: "official release " + published.tag,
	})
}

func (g *get) fetch(ctx context.Context, a asset, folder string) (string, error) {
	downloads, err := g.stage.folder("download")
	if err != nil {
		return "", err
	}
	root, err := g.stage.folder(folder)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(downloads, filepath.Base(a.name))
	err = g.from.download(ctx, a, archive, func(done, total int64) {
		p := Progress{Doing: "fetching " + a.name, Done: done, Total: total}
		if total > 0 {
			p.Percent = 100 * float64(done) / float64(total)
		}
		g.options.Progress(p)
	})
	if err != nil {
		return "", err
	}
	g.options.Progress(Progress{Doing: "unpacking " + a.name})
	if err := unpack(ctx, archive, root); err != nil {
		return "", err
	}
	return root, os.Remove(archive)
}

// insist returns an error that says that a variant can't be used here, or nil if that variant was asked for: then it is installed
// all the same, since a machine may get its GPU or its driver later.
func (g *get) insist(variant string, err error) error {
	if _, unfit := errors.AsType[*unfitError](err); !unfit || g.options.Variant == "" {
		return err
	}
	g.store.log.Warn("this variant can't be used here as the machine is now; it is installed, since you asked for it",
		"variant", variant, "error", err)
	return nil
}

// install checks that a staged engine starts, writes its runtime.json and renames it into place.
func (g *get) install(ctx context.Context, ready staged) (Runtime, error) {
	g.options.Progress(Progress{Doing: "checking that it starts"})
	version, err := prove(ctx, engine.LlamaVersion, filepath.Join(ready.root, ready.executable))
	if err != nil {
		return Runtime{}, err
	}
	if !slices.Contains(withoutGPU, ready.variant) {
		if err := g.insist(ready.variant, proveGPU(ctx, filepath.Join(ready.root, ready.executable), ready.variant)); err != nil {
			return Runtime{}, err
		}
	}
	m := manifest{
		Engine: LlamaCpp, Version: version, Variant: ready.variant, Origin: ready.origin, Package: ready.pkg,
		Executable: filepath.ToSlash(ready.executable),
	}
	found, err := g.store.put(m, ready.root)
	if err == nil && found.Already && ready.pkg != "" {
		if err := g.store.notePackage(found.Name, ready.pkg); err != nil {
			g.store.log.Warn("the package will be fetched again next time", "runtime", found.Name, "error", err)
		}
	}
	return found, err
}

// proveTimeout is long, because some systems scan new executables and libraries when they are first loaded.
const proveTimeout = 3 * time.Minute

// unfitError says that a downloaded engine doesn't run on this machine.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }
func (e *unfitError) Unwrap() error { return e.cause }

// prove starts an engine to get its version, which parse finds in the output. An engine that can't do that isn't installed.
func prove(ctx context.Context, parse func(output string) string, path string, arguments ...string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	output, err := engine.Ask(limited, path, slices.Concat(arguments, []string{"--version"})...)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &unfitError{fmt.Errorf("it doesn't start here: %w%s", err, saying(output))}
	}
	version = parse(output)
	if version == "" {
		return "", &unfitError{fmt.Errorf("it started, but told no version%s", saying(output))}
	}
	return version, nil
}

// withoutGPU are the variants that need no GPU, or work without one.
var withoutGPU = []string{variantCPU, variantBLAS, variantMetal}

// gpuAdvice says what a variant needs of the machine. Where a library of the driver is missing, the engine itself says nothing.
var gpuAdvice = map[string]string{
	variantCUDA: "it needs NVIDIA's driver, with libcuda.so.1; nvidia-smi shows whether that works",
	variantVulkan: "it needs a Vulkan driver, such as mesa-vulkan-drivers for AMD's and Intel's GPUs on " +
		"Debian; vulkaninfo shows whether that works",
	variantHIP: "it needs Linux's driver amdgpu, and to be allowed to use /dev/kfd and /dev/dri, as the group render is",
}

var (
	// listedGPU matches a device in the output of --list-devices, such as "  CUDA0: NVIDIA H200 (143155 MiB, 142600 MiB free)".
	listedGPU = regexp.MustCompile(`(?m)^\s+(\w+): .*MiB free\)`)
	// onProcessor matches the names of devices that the processor itself has.
	onProcessor = regexp.MustCompile(`^(CPU|BLAS|RPC)`)
	// complains matches a line of the engine's log that says why it has no device.
	complains = regexp.MustCompile(`(?mi)ggml_(?:cuda|vulkan|vk|hip|sycl|opencl)\w*: .*` +
		`(?:fail|error|no devices|not found|no usable|cannot).*$`)
)

// proveGPU returns an error if an engine of a variant lists no device besides the processor.
func proveGPU(ctx context.Context, path, variant string) error {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	// The engine acts on --list-devices as soon as it reads that, so what it shall log comes first.
	output, err := engine.Ask(limited, path, "--verbosity", "5", "--list-devices")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &unfitError{fmt.Errorf("it can't list its devices here: %w%s", err, saying(output))}
	}
	for _, device := range listedGPU.FindAllStringSubmatch(output, -1) {
		if !onProcessor.MatchString(device[1]) {
			return nil
		}
	}
	advice := cmp.Or(gpuAdvice[variant], "see whether the GPU's driver is installed and works, and has what this variant needs")
	return &unfitError{fmt.Errorf("it finds no GPU that it can use: %s%s", advice, saying(complains.FindString(output)))}
}

// saying quotes the last line of a program's output, which usually is the reason.
func saying(output string) string {
	text := strings.TrimSpace(output)
	if text == "" {
		return ""
	}
	return ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
