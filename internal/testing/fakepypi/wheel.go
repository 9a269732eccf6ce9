package fakepypi

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Wheel is a package of pure Python.
type Wheel struct {
	Name, Version string
	Files         map[string]string // by path
	// Requires are the packages that it requires, such as `mlx-cpu; extra == "cpu"`.
	Requires []string
	Extras   []string // the names of the extras in Requires
}

// File returns the name of the wheel's file.
func (w Wheel) File() string { return w.stem() + "-py3-none-any.whl" }

func (w Wheel) stem() string {
	return strings.ReplaceAll(normal(w.Name), "-", "_") + "-" + w.Version
}

// pack returns the wheel as a zip file.
func (w Wheel) pack() ([]byte, error) {
	files := maps.Clone(w.Files)
	if files == nil {
		files = map[string]string{}
	}
	var metadata, record strings.Builder
	fmt.Fprintf(&metadata, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", w.Name, w.Version)
	for _, extra := range w.Extras {
		fmt.Fprintf(&metadata, "Provides-Extra: %s\n", extra)
	}
	for _, required := range w.Requires {
		fmt.Fprintf(&metadata, "Requires-Dist: %s\n", required)
	}
	info := w.stem() + ".dist-info/"
	files[info+"METADATA"] = metadata.String()
	files[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: fakepypi\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	paths := slices.Sorted(maps.Keys(files))
	for _, path := range append(paths, info+"RECORD") {
		fmt.Fprintf(&record, "%s,,\n", path)
	}
	files[info+"RECORD"] = record.String()

	var archive bytes.Buffer
	zipped := zip.NewWriter(&archive)
	for _, path := range append(paths, info+"RECORD") {
		file, err := zipped.Create(path)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(file, files[path]); err != nil {
			return nil, err
		}
	}
	err := zipped.Close()
	return archive.Bytes(), err
}

// MLXLM returns a wheel of mlx-lm that has nothing but a version, and requires what the real one requires on each platform. Its
// import runs code, which may be empty.
func MLXLM(version, code string) Wheel {
	return Wheel{
		Name: "mlx-lm", Version: version,
		Files: map[string]string{
			"mlx_lm/__init__.py": fmt.Sprintf("__version__ = %q\n%s\n", version, code),
			"mlx_lm/__main__.py": "import sys, mlx_lm\n" +
				"if sys.argv[1:] != ['--version']: sys.exit('not asked for the version: ' + repr(sys.argv))\n" +
				"print(mlx_lm.__version__)\n",
		},
		Requires: []string{"mlx", `mlx-cpu; extra == "cpu"`, `mlx-cuda-12; extra == "cuda12"`, `mlx-cuda-13; extra == "cuda13"`},
		Extras:   []string{"cpu", "cuda12", "cuda13"},
	}
}

// MLX returns the empty wheels that MLXLM requires.
func MLX() []Wheel {
	var all []Wheel
	for _, name := range []string{"mlx", "mlx-cpu", "mlx-cuda-12", "mlx-cuda-13"} {
		all = append(all, Wheel{Name: name, Version: "0.31.2", Files: map[string]string{strings.ReplaceAll(name, "-", "_") + "/__init__.py": ""}})
	}
	return all
}
