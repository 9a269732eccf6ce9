package catalog

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// seed is the seed of signatures.
var seed = maphash.MakeSeed()

// maxReaders bounds the number of headers read in parallel.
const maxReaders = 8

// scan scans the folders. c.scanning is held.
func (c *Catalog) scan(ctx context.Context) (*listing, error) {
	config, started := c.config.Load(), time.Now()
	var saved map[string]header
	var reading sync.WaitGroup
	reading.Go(func() { saved = c.saved.read(c.log) }) // in parallel, since both are slow if there are many models
	c.starved = nil
	walks, err := c.walk(ctx, config)
	reading.Wait()
	if saved != nil {
		maps.Copy(saved, c.headers)
		c.headers = saved
	}
	if err != nil {
		return nil, err
	}
	if c.starved != nil {
		return nil, fmt.Errorf("looking for models: %w", c.starved)
	}
	isNew, err := c.readHeaders(ctx, walks)
	if err != nil {
		return nil, err
	}
	signature := signatureOf(walks)
	l := c.last.Load()
	if l != nil && !isNew && l.signature == signature && l.config == config {
		same := *l
		l = &same
	} else {
		models, companions := c.assemble(walks, config.formats)
		if here := len(models); config.others != nil {
			byKey := func(m Model, key string) int { return strings.Compare(m.Key, key) }
			for _, m := range *config.others {
				if _, ok := slices.BinarySearchFunc(models[:here], m.Key, byKey); !ok {
					models = append(models, m)
				}
			}
			slices.SortStableFunc(models, func(a, b Model) int { return strings.Compare(a.Key, b.Key) })
		}
		l = newListing(models, companions)
		if c.starved != nil {
			return nil, fmt.Errorf("reading models: %w", c.starved)
		}
		l.signature, l.config = signature, config
	}
	l.at = time.Now()
	l.took = l.at.Sub(started)
	return l, nil
}

// walk reads the folders.
func (c *Catalog) walk(ctx context.Context, config *config) ([]*walk, error) {
	walks := make([]*walk, len(config.roots))
	for i, root := range config.roots {
		walks[i] = &walk{ctx: ctx, catalog: c, config: config, mlx: slices.Contains(config.formats, FormatMLX)}
		if err := walks[i].below(root); err != nil {
			return nil, err
		}
	}
	return walks, nil
}

// readHeaders reads the headers that aren't known, several in parallel. If the context ends, it keeps those that it has read.
func (c *Catalog) readHeaders(ctx context.Context, walks []*walk) (isNew bool, err error) {
	current := make(map[string]header, len(c.headers))
	var todo []*found
	for _, w := range walks {
		for i := range w.found {
			f := &w.found[i]
			if h, ok := c.headers[f.path]; ok && h.describes(f) {
				current[f.path] = h
			} else if _, twice := current[f.path]; !twice && f.problem == nil {
				current[f.path] = header{}
				todo = append(todo, f)
			}
		}
	}
	var mu sync.Mutex
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(maxReaders, runtime.GOMAXPROCS(0), len(todo)) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(todo) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				h, path := readHeader(todo[i]), todo[i].path
				mu.Lock()
				c.headers[path], current[path] = h, h
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(todo) > 0 || len(current) != len(c.headers) {
		c.saved.dirty = true
	}
	c.headers = current // forgets deleted files
	return len(todo) > 0, nil
}

// signatureOf returns the same number for two scans with the same result.
func signatureOf(walks []*walk) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, w := range walks {
		maphash.WriteComparable(&h, len(w.found))
		for _, f := range w.found {
			maphash.WriteComparable(&h, [...]string{f.path, f.parts, string(f.layout), f.publisher, f.repo, f.label, f.scope})
			maphash.WriteComparable(&h, [...]int64{f.size, f.changed.UnixNano()})
			maphash.WriteComparable(&h, f.problem != nil)
		}
	}
	return h.Sum64()
}

// assemble makes models and companions of the files found. Models that can't be used get the keys that remain.
func (c *Catalog) assemble(walks []*walk, formats []Format) (all []Model, companions []Companion) {
	seen := map[stamp][]claimed{}
	var good, broken []labelled
	scopes := map[string]*scope{}
	for i, w := range walks {
		of := scopesOf(w, c.headers)
		g, b := c.modelsOf(i, w, of, formats, seen)
		good, broken = append(good, g...), append(broken, b...)
		maps.Copy(scopes, of)
	}
	taken := map[string]string{} // maps keys to the models' paths
	inScope := map[string][]labelled{}
	for _, m := range slices.Concat(good, broken) {
		if c.claim(&m, taken) {
			all = append(all, m.Model)
			inScope[m.scope] = append(inScope[m.scope], m)
		}
	}
	slices.SortFunc(all, func(a, b Model) int { return cmp.Compare(a.Key, b.Key) })
	companions = companionsOf(scopes, c.headers, inScope)
	slices.SortFunc(companions, func(a, b Companion) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Path, b.Path)) })
	return all, companions
}

// claim takes the model's key, or one with a variant if another folder's model has it.
func (c *Catalog) claim(m *labelled, taken map[string]string) bool {
	other, ok := taken[m.Key]
	if ok && m.variant == "" && m.Err == nil {
		key := m.Key
		for _, variant := range m.Variants {
			if m.Key = key + "@" + variant; taken[m.Key] == "" {
				ok = false
				break
			}
		}
		if ok {
			m.Key = key
		}
	}
	if ok {
		if m.Err == nil { // otherwise that has been logged
			c.report(m.Path, fmt.Errorf("its key %s is that of %s", m.Key, other))
		}
		return false
	}
	taken[m.Key] = m.Path
	return true
}

// stamp is the same for two names of one file.
type stamp struct {
	size    int64
	changed int64
}

type claimed struct {
	root int
	key  string
	info os.FileInfo
}

// modelsOf returns the models of one root with their keys, separated into usable and broken ones, in the order of the walk. It
// leaves out files that another root holds as well.
func (c *Catalog) modelsOf(root int, w *walk, scopes map[string]*scope, formats []Format, seen map[stamp][]claimed) (
	good, broken []labelled,
) {
	type sameRepo struct{ good, broken []labelled }
	repos := map[string]*sameRepo{}
	var keys []string
	for i := range w.found {
		f := &w.found[i]
		h := c.headers[f.path]
		if f.problem != nil {
			h = brokenHeader(f, f.problem)
		}
		if f.role != "" || !slices.Contains(formats, f.format) {
			continue
		}
		m := modelOf(f, h, scopes[f.scope])
		if isElsewhere(f, m.Key, root, seen) {
			continue
		}
		r := repos[m.Key]
		if r == nil {
			r = &sameRepo{}
			repos[m.Key] = r
			keys = append(keys, m.Key)
		}
		if m.Err == nil {
			r.good = append(r.good, m)
			continue
		}
		c.report(f.path, h.model.Err)
		r.broken = append(r.broken, m)
	}
	for _, key := range keys {
		r := repos[key]
		if len(r.good) > 1 {
			withVariants(r.good, nil)
		}
		if len(r.good)+len(r.broken) > 1 {
			taken := map[string]bool{}
			for _, m := range r.good {
				taken[m.variant] = true
			}
			withVariants(r.broken, taken)
		}
		good, broken = append(good, r.good...), append(broken, r.broken...)
	}
	return good, broken
}

func modelOf(f *found, h header, s *scope) labelled {
	name := cmp.Or(f.repo, withoutQuantization(f.label, h.model.Quantization.Name))
	m := labelled{Model: h.model, label: f.label, scope: f.scope}
	m.Key, m.Publisher, m.Path, m.Layout = Key(f.publisher, name), f.publisher, f.path, f.layout
	m.DisplayName = cmp.Or(m.DisplayName, name)
	if m.Type == TypeLLM && m.Pooling == "" && (embeddingWord.MatchString(f.repo) || embeddingWord.MatchString(f.label)) {
		m.Type, m.Pooling, m.Reasoning = TypeEmbedding, PoolingLast, Reasoning{} // its header says nothing of that
	}
	_, named := filename.TrimQuantization(m.label)
	plain := strings.TrimPrefix(strings.ToUpper(named), "UD-") // Unsloth's, which people call by the rest of the name
	for _, variant := range []string{variantOf(&m.Model), m.Quantization.Name, named, plain, m.label} {
		if variant = unsafeInKeys.Replace(Normal(variant)); variant != "" && !slices.Contains(m.Variants, variant) {
			m.Variants = append(m.Variants, variant)
		}
	}
	if p := s.projector(f.label); p.found != nil && f.format == FormatGGUF {
		m.Projector, m.Vision, m.Audio = p.path, p.vision, p.audio
	}
	return m
}

// isElsewhere reports whether an earlier root holds the same file, and records that this one does. A link with a name of its
// own counts as another model.
func isElsewhere(f *found, key string, root int, seen map[stamp][]claimed) bool {
	if f.info == nil {
		return false
	}
	s := stamp{f.size, f.changed.UnixNano()}
	for _, other := range seen[s] {
		if other.root < root && (!f.linked || other.key == key) && os.SameFile(other.info, f.info) {
			return true
		}
	}
	seen[s] = append(seen[s], claimed{root, key, f.info})
	return false
}

// Files describes how to find and read models of another format, in which each model is one file.
type Files struct {
	Format Format
	Ending string // of the file names, such as ".onnx"
	// Read sets the fields that come from a file's header, such as the type and the architecture. The path, size and time
	// are already set. The error says why the file can't be used.
	Read func(path string) (Model, error)
}

// SetFiles adds further formats. It must be called at most once, before the catalog is used.
func (c *Catalog) SetFiles(files ...Files) {
	c.change(func(to *config) { to.files = files })
}

// filesOf returns how to read a file as a model, judged by its name, and whether it is one.
func (c *config) filesOf(name string) (Files, bool) {
	if filename.IsGGUF(name) {
		return Files{Format: FormatGGUF}, true
	}
	for _, f := range c.files {
		if stem, ok := strings.CutSuffix(name, f.Ending); ok && stem != "" {
			return f, true
		}
	}
	return Files{}, false
}
