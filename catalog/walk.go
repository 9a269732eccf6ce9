package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// maxNesting bounds the depth of folders.
const maxNesting = 8

// maxVisits bounds how often a folder is entered through links.
const maxVisits = 8

var errEnough = errors.New("there is too much to look at")

// found is a file or folder that may be a model.
type found struct {
	path    string
	info    fs.FileInfo // identifies the file
	size    int64
	changed time.Time
	parts   string // state of its other files

	format          Format
	read            func(path string) (Model, error) // nil: the catalog knows its format
	layout          Layout
	publisher, repo string // repo is empty if only the file's name is known
	label           string // name of the file within its repository, without extension
	role            string // see Model.Role; set once the headers are read
	linked          bool   // it is a link in a plain layout
	scope           string // the same for files that may belong together
	flat            bool   // its scope may hold several repositories
	problem         error  // why it can't be used
}

// location is the position of a walk.
type location struct {
	dir  string
	real string   // dir with links resolved
	way  []string // resolved paths of the folders that lead here, including this one
	dirs []string // names of the folders below the root

	linked bool // reached through a link
}

func (p location) into(name, real string) location {
	return location{
		below(p.dir, name), real, append(slices.Clip(p.way), real), append(slices.Clip(p.dirs), name), p.linked,
	}
}

// below is filepath.Join for clean paths.
func below(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// walk collects what may be models below one root.
type walk struct {
	ctx     context.Context
	catalog *Catalog
	config  *config
	mlx     bool
	found   []found
	visits  map[string]int // by resolved path
	left    limits
}

func (w *walk) below(root string) error {
	real, err := filepath.EvalSymlinks(root)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(real); err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
	}
	if err != nil {
		if !os.IsNotExist(err) {
			w.catalog.report(root, err)
		}
		return nil
	}
	w.left, w.visits = w.catalog.limits, map[string]int{}
	err = w.folder(location{dir: filepath.Clean(root), real: real, way: []string{real}})
	if errors.Is(err, errEnough) {
		w.catalog.report(root, fmt.Errorf("it has more than %d folders or %d model files: the rest is left out; point models_dir at a "+
			"smaller folder", w.catalog.limits.folders, w.catalog.limits.files))
		return nil
	}
	return err
}

func (w *walk) folder(p location) error {
	list, err := w.enter(p)
	if err != nil || list == nil {
		return err
	}
	switch base := filepath.Base(p.dir); {
	case strings.HasPrefix(base, "models--") && list.holdsFolder("snapshots"):
		return w.hub(p, strings.TrimPrefix(base, "models--"))
	case (strings.HasPrefix(base, "datasets--") || strings.HasPrefix(base, "spaces--")) && list.holdsFolder("snapshots"):
		return nil
	case list.holdsFolder("manifests") && list.holdsFolder("blobs"):
		return w.ollama(p)
	}
	publisher, repo, within := repository(p.dirs)
	of := found{
		layout: LayoutPlain, publisher: publisher, repo: repo, flat: len(p.dirs) == 0,
		scope: p.dir,
	}
	for range within {
		of.scope = filepath.Dir(of.scope)
	}
	return w.entries(p, list, of, newNotes(p.dir, list, w.catalog.report))
}

// enter reads a folder. It returns nil if the folder is skipped. A folder that can't be read is logged and skipped.
func (w *walk) enter(p location) (*folderList, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	if len(p.dirs) > maxNesting {
		w.catalog.report(p.dir, errTooDeep)
		return nil, nil
	}
	if p.linked {
		if w.visits[p.real]++; w.visits[p.real] > maxVisits {
			return nil, nil
		}
	}
	if w.left.folders--; w.left.folders < 0 {
		return nil, errEnough
	}
	list, err := w.list(p.dir)
	switch {
	case w.ctx.Err() != nil:
		return nil, w.ctx.Err()
	case err != nil:
		if !os.IsNotExist(err) {
			w.catalog.report(p.dir, err)
		}
		return nil, nil
	case list.cut:
		w.catalog.report(p.dir, fmt.Errorf("it has more than %d entries: the rest is left out", w.catalog.limits.entries))
	}
	return &list, nil
}

// entries collects the models in a folder and its subfolders. If the layout determines the repository, that applies to the
// subfolders as well. Links are followed, since users link their models.
func (w *walk) entries(p location, list *folderList, of found, notes *notes) error {
	if w.mlx && slices.ContainsFunc(list.entries, func(e entry) bool { return e.name == mlx.ConfigFile || mlx.IsWeights(e.name) }) {
		if err := w.mlxFolder(p, list, of); err != nil {
			return err
		}
	}
	for _, e := range list.entries {
		if err := w.entry(p, e, of, notes); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(p location, e entry, of found, notes *notes) error {
	if e.kind.IsDir() {
		return w.subfolder(p, e, of)
	}
	files, isModel := w.config.filesOf(e.name)
	if e.kind.IsRegular() && !isModel {
		return nil
	}
	path := below(p.dir, e.name)
	info, err := os.Stat(path)
	switch {
	case err != nil && of.layout == LayoutPlain && isModel && e.kind&fs.ModeSymlink != 0:
		of.format = files.Format
		of.problem = errors.New("it is a link to what isn't there") // such as on an unmounted disk
		return w.file(path, e.name, nil, of)
	case err != nil:
		if !os.IsNotExist(err) || e.kind&fs.ModeSymlink != 0 {
			w.catalog.report(path, err)
		}
		return nil
	case info.IsDir():
		return w.subfolder(p, e, of)
	case info.Mode().IsRegular() && isModel:
		of = notes.repository(e.name, of)
		of.format, of.read = files.Format, files.Read
		of.linked = of.layout == LayoutPlain && e.kind&fs.ModeSymlink != 0
		return w.file(path, e.name, info, of)
	default:
		return nil
	}
}

func (w *walk) subfolder(p location, e entry, of found) error {
	real := below(p.real, e.name)
	if !e.kind.IsDir() {
		var err error
		if real, err = filepath.EvalSymlinks(filepath.Join(p.dir, e.name)); err != nil {
			w.catalog.report(filepath.Join(p.dir, e.name), err)
			return nil
		}
		if slices.Contains(p.way, real) {
			w.catalog.report(filepath.Join(p.dir, e.name), errLoop)
			return nil
		}
	}
	next := p.into(e.name, real)
	next.linked = next.linked || !e.kind.IsDir()
	if of.layout == LayoutPlain {
		return w.folder(next)
	}
	list, err := w.enter(next)
	if err != nil || list == nil {
		return err
	}
	return w.entries(next, list, of, nil)
}

// file adds a file that may be a model, unless it is a later part of a split model.
func (w *walk) file(path, name string, info fs.FileInfo, of found) error {
	if filename.IsLaterPart(name) {
		return nil
	}
	of.path = path
	if of.label == "" {
		of.label = filename.Stem(name)
	}
	if info != nil {
		of.info, of.size, of.changed, of.parts = info, info.Size(), info.ModTime(), parts(path)
	}
	return w.add(of)
}

func (w *walk) add(f found) error {
	if w.left.files--; w.left.files < 0 {
		return errEnough
	}
	w.found = append(w.found, f)
	return nil
}

// parts returns a text that changes if other parts of a split model change. It ends at the first missing part.
func parts(first string) string {
	var all strings.Builder
	for n, path := range filename.OtherParts(first) {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&all, "%d: none", n)
			break
		}
		fmt.Fprintf(&all, "%d: %d %d\n", n, info.Size(), info.ModTime().UnixNano())
	}
	return all.String()
}
