package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lmcaddy/lmcaddy/supervisor/runtimes/venv"
)

// mlxVersion is the version of mlx-lm that is installed unless another one is requested.
const mlxVersion = "0.31.3"

// mlxArguments make Python run mlx_lm's server. -I keeps packages of the working directory and of the user out.
var mlxArguments = []string{"-I", "-m", "mlx_lm", "server"}

var (
	pythonVersion = regexp.MustCompile(`^\d+(\.\d+){1,3}((a|b|rc|\.post|\.dev)\d+)?$`)
	versionLine   = regexp.MustCompile(`(?m)^(\d+\.\d+[\w.+]*)\s*$`)
)

// mlxBuild is a way to install mlx-lm.
type mlxBuild struct {
	variant string
	extra   string // of the package
}

func (g *get) checkMLX() error {
	o := &g.options
	g.version = cmp.Or(strings.TrimPrefix(strings.TrimSpace(o.Version), "v"), mlxVersion)
	if !pythonVersion.MatchString(g.version) {
		return fmt.Errorf("%q is not a version of mlx-lm: give one like %s", o.Version, mlxVersion)
	}
	if o.Releases != "" {
		return errors.New("mlx-lm is a Python package: give the address of a package index, not of releases")
	}
	index, err := url.Parse(o.Index)
	if o.Index != "" && (err != nil || index.Host == "" || (index.Scheme != "https" && index.Scheme != "http")) {
		return fmt.Errorf("%q is not the address of a package index: give a URL like https://packages.example/simple", o.Index)
	}
	return nil
}

// chooseMLX returns the builds of mlx-lm to try, best first; only one if a variant was requested.
func (h hardware) chooseMLX(want string) ([]mlxBuild, error) {
	var builds []mlxBuild
	switch {
	case h.os == "darwin" && h.arch == "arm64":
		builds = []mlxBuild{{variant: variantMetal}}
	case h.os == "darwin":
		return nil, errors.New("mlx-lm needs a Mac with an Apple processor (M1 or later): on this one, use llama.cpp")
	case h.os == "linux":
		cuda, cpu := mlxBuild{variantCUDA, "cuda12"}, mlxBuild{variantCPU, "cpu"}
		if h.nvidia != nil && h.nvidia.cuda.major >= 13 {
			cuda.extra = "cuda13"
		}
		builds = []mlxBuild{cpu, cuda}
		if h.nvidia != nil {
			builds = []mlxBuild{cuda, cpu}
		}
	default:
		return nil, fmt.Errorf("mlx-lm runs on Macs with an Apple processor and on Linux, not on %s: use llama.cpp", h.os)
	}
	var names []string
	for _, b := range builds {
		if b.variant == want {
			return []mlxBuild{b}, nil
		}
		names = append(names, b.variant)
	}
	if want != "" {
		return nil, fmt.Errorf("mlx-lm has no variant %q for %s/%s; it has: %s", want, h.os, h.arch, strings.Join(names, ", "))
	}
	if h.os == "linux" && h.nvidia == nil {
		builds = builds[:1]
	}
	return builds, nil
}

// mlx gets mlx-lm, in a virtual environment of Python.
func (g *get) mlx(ctx context.Context) (Runtime, error) {
	builds, err := g.store.hardware(ctx).chooseMLX(g.options.Variant)
	if err != nil {
		return Runtime{}, err
	}
	for _, b := range builds {
		if found, err := g.store.load(runtimeName(MLXLM, g.version, b.variant)); err == nil {
			found.Already = true
			return found, nil
		}
		var found Runtime
		if found, err = g.environment(ctx, b); err == nil || errors.Is(err, venv.ErrNoPython) {
			return found, err
		}
		g.fail(fmt.Sprintf("%s %s, %s", MLXLM, g.version, b.variant), err)
		if _, unfit := errors.AsType[*unfitError](err); !unfit {
			break
		}
		g.store.log.Warn("this variant doesn't run here", "engine", MLXLM, "variant", b.variant, "error", err)
	}
	return Runtime{}, g.explain(err)
}

func (g *get) environment(ctx context.Context, b mlxBuild) (Runtime, error) {
	temp, err := g.stage.folder("temp")
	if err != nil {
		return Runtime{}, err
	}
	root, err := g.stage.folder("root")
	if err != nil {
		return Runtime{}, err
	}
	made, err := venv.Make(ctx, venv.Options{
		Folder: root, Temp: temp, Requirement: b.requirement(g.version), Index: g.options.Index,
		Progress: func(doing string) { g.options.Progress(Progress{Doing: doing}) },
	})
	if err != nil {
		return Runtime{}, err
	}
	g.options.Progress(Progress{Doing: "checking that it starts"})
	module := mlxArguments[:len(mlxArguments)-1]
	version, err := prove(ctx, mlxReported, filepath.Join(root, made.Interpreter), module...)
	if err != nil {
		return Runtime{}, err
	}
	m := manifest{
		Engine: MLXLM, Version: version, Variant: b.variant, Origin: made.Source + ", Python " + made.Python,
		Executable: filepath.ToSlash(made.Interpreter), Arguments: mlxArguments,
	}
	return g.store.put(m, root)
}

func (b mlxBuild) requirement(version string) string {
	if b.extra == "" {
		return MLXLM + "==" + version
	}
	return MLXLM + "[" + b.extra + "]==" + version
}

// mlxReported returns the version in the output of `mlx_lm --version`: the last line that is one, after any warnings.
func mlxReported(output string) string {
	all := versionLine.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}
