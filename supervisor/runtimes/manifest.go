package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const manifestName = "runtime.json"

// manifest is what runtime.json holds. A folder without one is not a runtime.
type manifest struct {
	Engine     string    `json:"engine"`
	Version    string    `json:"version"`
	Variant    string    `json:"variant"`
	Origin     string    `json:"origin"`
	Package    string    `json:"package,omitempty"` // the distribution's package that was last seen to hold it, with its version
	Executable string    `json:"executable"`        // relative to the folder, with slashes
	FetchedAt  time.Time `json:"fetched_at"`
}

// name is the folder that the runtime is installed as.
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

func (m manifest) write(folder string) error {
	return atomicfile.WriteFile(filepath.Join(folder, manifestName), 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(m)
	})
}

// packaged is the name of the runtime that a package, named with its version, would give again; empty: there is none.
func (s *Store) packaged(pkg string) string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		m, err := readManifest(filepath.Join(s.dir, entry.Name()))
		if err != nil || m.Package != pkg {
			continue
		}
		if _, err := s.load(entry.Name()); err == nil {
			return entry.Name()
		}
	}
	return ""
}

// notePackage records which package an installed runtime is the same as.
func (s *Store) notePackage(name, pkg string) error {
	folder := filepath.Join(s.dir, name)
	m, err := readManifest(folder)
	if err != nil || m.Package == pkg {
		return err
	}
	m.Package = pkg
	return m.write(folder)
}

// buildNumber is the number in a version like "b11669", or 0.
func buildNumber(version string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(version, "b"))
	if err != nil {
		return 0
	}
	return number
}
