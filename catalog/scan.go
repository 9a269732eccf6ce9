package catalog

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxNesting bounds how deep folders are followed.
const maxNesting = 8

// found is a file of a model, with what its header says.
type found struct {
	path, rel string
	header    header
}

// scan reads the folders. c.scanning is held.
func (c *Catalog) scan(ctx context.Context) (*listing, error) {
	roots := c.roots.Load()
	l := &listing{at: time.Now(), roots: roots}
	headers := map[string]header{}
	var all []Model
	for _, root := range *roots {
		w := walk{ctx: ctx, catalog: c, root: root, headers: headers, folders: map[string]*folder{}}
		if err := w.below(root); err != nil {
			return nil, err
		}
		all = append(all, w.models()...)
	}
	l.models = c.withoutHidden(all)
	slices.SortFunc(l.models, func(a, b Model) int { return cmp.Compare(a.Key, b.Key) })
	c.headers = headers // forgets the files that are gone
	return l, nil
}

// withoutHidden leaves out what has the key of a model before it. What can't be used hides nothing that can.
func (c *Catalog) withoutHidden(all []Model) []Model {
	slices.SortStableFunc(all, func(a, b Model) int { return rank(a) - rank(b) })
	taken := map[string]string{}
	var models []Model
	for _, m := range all {
		switch other, ok := taken[m.Key]; {
		case !ok:
			taken[m.Key] = m.Path
			models = append(models, m)
		case m.Err == nil: // else the log knows already
			c.report(m.Path, fmt.Errorf("its key %s is that of %s", m.Key, other))
		}
	}
	return models
}

func rank(m Model) int {
	if m.Err != nil {
		return 1
	}
	return 0
}

// walk collects the model files below one root.
type walk struct {
	ctx     context.Context
	catalog *Catalog
	root    string
	headers map[string]header
	files   []found
	folders map[string]*folder // by path
}

// shardSuffix ends the name of one part of a split model.
var shardSuffix = regexp.MustCompile(`-(\d{5})-of-(\d{5})$`)

// below collects the files of a root and of its folders.
func (w *walk) below(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		if !os.IsNotExist(err) {
			w.catalog.report(root, err)
		}
		return nil
	}
	return w.folder(root, []os.FileInfo{info})
}

// folder collects a folder's files. Links are followed, since users link their models in. What can't be read is left out.
// way is the folders that lead here, this one last.
func (w *walk) folder(dir string, way []os.FileInfo) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if len(way) > maxNesting+1 {
		w.catalog.report(dir, errTooDeep)
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		w.catalog.report(dir, err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			w.catalog.report(path, err)
		case info.IsDir() && slices.ContainsFunc(way, func(f os.FileInfo) bool { return os.SameFile(f, info) }):
			w.catalog.report(path, errLoop)
		case info.IsDir():
			if err := w.folder(path, append(way, info)); err != nil {
				return err
			}
		case strings.EqualFold(filepath.Ext(path), ".gguf") && info.Mode().IsRegular():
			w.file(path, info)
		}
	}
	return nil
}

func (w *walk) file(path string, info os.FileInfo) {
	part := shardSuffix.FindStringSubmatch(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	if part != nil && part[1] != "00001" {
		return // the first part stands for all
	}
	state := ""
	if part != nil {
		state = parts(path, part[2])
	}
	h, ok := w.catalog.headers[path]
	if !ok || !h.describes(info) || h.parts != state {
		h = readHeader(path, info)
		h.parts = state
	}
	w.headers[path] = h
	if h.err != nil {
		w.catalog.report(path, h.err)
	}
	switch h.kind {
	case kindModel:
		rel, err := filepath.Rel(w.root, path)
		if err != nil {
			rel = filepath.Base(path)
		}
		w.files = append(w.files, found{path, rel, h})
		if h.err == nil {
			w.folderOf(path).names[modelName(path)] = true
		}
	case kindProjector:
		f := w.folderOf(path)
		f.projectors = append(f.projectors, projector{path, info.Size()})
	case kindOther: // adapters, importance matrices
	}
}

// parts tells the states of a split model's other parts apart: sizes and times, up to the first part that isn't there.
func parts(first, count string) string {
	n, err := strconv.Atoi(count)
	if err != nil {
		return ""
	}
	ext := filepath.Ext(first)
	base := strings.TrimSuffix(first, ext)
	base = strings.TrimSuffix(base, "-00001-of-"+count)
	var all strings.Builder
	for i := 2; i <= n; i++ {
		info, err := os.Stat(fmt.Sprintf("%s-%05d-of-%s%s", base, i, count, ext))
		if err != nil {
			fmt.Fprintf(&all, "%d: none", i)
			break
		}
		fmt.Fprintf(&all, "%d: %d %d\n", i, info.Size(), info.ModTime().UnixNano())
	}
	return all.String()
}

// models gives each file its key. A file that can't be used never changes the key of one that can.
func (w *walk) models() []Model {
	type repo struct{ good, broken []Model }
	repos := map[string]*repo{}
	for _, f := range w.files {
		publisher, name := repository(f.rel, f.header.model.Quantization.Name)
		key := unsafeInKeys.Replace(repoKey(publisher, name))
		m := f.header.model
		m.Key, m.Publisher, m.Path = key, publisher, f.path
		m.Projector = w.folderOf(f.path).projector(f.path)
		m.DisplayName = cmp.Or(m.DisplayName, name)
		r := repos[key]
		if r == nil {
			r = &repo{}
			repos[key] = r
		}
		if m.Err == nil {
			r.good = append(r.good, m)
		} else {
			r.broken = append(r.broken, m)
		}
	}
	var all []Model
	for _, r := range repos {
		all = append(all, variants(r.good, r.good)...)
		all = append(all, variants(r.broken, slices.Concat(r.good, r.broken))...)
	}
	slices.SortFunc(all, func(a, b Model) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// variants adds to the models' keys what tells them from the others of their repository: the quantization, else the
// file's name.
func variants(models, others []Model) []Model {
	if len(others) < 2 {
		return models
	}
	count := map[string]int{}
	for _, m := range others {
		count[m.Quantization.Name]++
	}
	for i := range models {
		m := &models[i]
		suffix := m.Quantization.Name
		if suffix == "" || count[suffix] > 1 {
			suffix = stem(m.Path)
		}
		m.Key += "@" + unsafeInKeys.Replace(normal(suffix))
	}
	return models
}
