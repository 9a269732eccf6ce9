package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const manifestName = "runtime.json"

// manifest is the content of runtime.json. A folder without one isn't a runtime.
type manifest struct {
	Engine     string    `json:"engine"`
	Version    string    `json:"version"`
	Variant    string    `json:"variant"`
	Origin     string    `json:"origin"`
	Package    string    `json:"package,omitempty"` // the distribution's package that contains it, with its version
	Executable string    `json:"executable"`        // relative to the folder, with slashes
	Arguments  []string  `json:"arguments,omitempty"`
	FetchedAt  time.Time `json:"fetched_at"`
}

// name returns the folder of the runtime.
func (m manifest) name() string { return runtimeName(m.Engine, m.Version, m.Variant) }

func runtimeName(engine, version, variant string) string {
	return engine + "-" + version + "-" + variant
}

func readManifest(folder string) (manifest, error) {
	var m manifest
	text, err := os.ReadFile(filepath.Join(folder, manifestName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return m, fmt.Errorf("not a runtime: it has no %s", manifestName)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("reading %s: %w", manifestName, err)
	}
	if !filepath.IsLocal(filepath.FromSlash(m.Executable)) {
		return m, fmt.Errorf("%s names an executable outside its folder: %q", manifestName, m.Executable)
	}
	return m, nil
}

// RootOf returns the folder of the runtime to which an executable belongs, wherever that folder is: the one that contains it, or the
// target of the links to it, and whose runtime.json names it. It is empty for any other executable.
func RootOf(executable string) string {
	real, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return ""
	}
	for folder := filepath.Dir(real); folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		m, err := readManifest(folder)
		if err == nil && filepath.Join(folder, filepath.FromSlash(m.Executable)) == real {
			return folder
		}
	}
	return ""
}

func (m manifest) write(folder string) error {
	return atomicfile.WriteFile(filepath.Join(folder, manifestName), 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(m)
	})
}

// packaged returns the name of the runtime of a variant that was made from a package, named with its version, or "".
func (s *Store) packaged(pkg, variant string) string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		m, err := readManifest(filepath.Join(s.dir, entry.Name()))
		if err != nil || m.Package != pkg || m.Variant != variant {
			continue
		}
		if _, err := s.load(entry.Name()); err == nil {
			return entry.Name()
		}
	}
	return ""
}

// notePackage records the package that contains the same version as an installed runtime.
func (s *Store) notePackage(name, pkg string) error {
	folder := filepath.Join(s.dir, name)
	m, err := readManifest(folder)
	if err != nil || m.Package == pkg {
		return err
	}
	m.Package = pkg
	return m.write(folder)
}

// compareVersions compares versions such as "b11669" and "0.31.3" by their numbers.
func compareVersions(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) []int {
	fields := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	found := make([]int, len(fields))
	for i, field := range fields {
		found[i], _ = strconv.Atoi(field) // too large a number is the largest
	}
	return found
}
