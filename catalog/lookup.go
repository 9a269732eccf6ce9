package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
)

// listing is the result of a scan. Only unchanged is ever written to again.
type listing struct {
	models []Model // sorted by key
	known  []string
	byKey  map[string]int
	byName map[string][]int // by all other names

	companions  []Companion // sorted by key and path
	byCompanion map[string][]int

	config    *config
	signature uint64 // of the files it was made from
	at        time.Time
	took      time.Duration
	number    uint64 // of the scan

	unchanged *sync.Map // by the path of a model's file: the time.Time at which it was last seen to be as it was
}

// newListing indexes models, which must be sorted by key, and companions.
func newListing(models []Model, companions []Companion) *listing {
	l := &listing{
		models: models, byKey: make(map[string]int, len(models)), byName: make(map[string][]int, 2*len(models)),
		companions: companions, byCompanion: make(map[string][]int, 4*len(companions)), unchanged: new(sync.Map),
	}
	for i := range companions {
		for _, name := range companions[i].names() {
			l.byCompanion[name] = append(l.byCompanion[name], i)
		}
	}
	for i, m := range models {
		l.byKey[m.Key] = i
		if m.Err == nil {
			l.known = append(l.known, m.Key)
		}
		for _, name := range otherNames(m) {
			l.byName[name] = append(l.byName[name], i)
		}
	}
	return l
}

// otherNames returns the names of a model besides its key: without the publisher, and with each of its variants or none.
func otherNames(m Model) []string {
	repo, _, _ := strings.Cut(m.Key, "@")
	_, bare, _ := strings.Cut(repo, "/")
	names := []string{repo, bare}
	for _, variant := range m.Variants {
		names = append(names, repo+"@"+variant, bare+"@"+variant)
	}
	if _, short, _ := strings.Cut(m.Key, "/"); !slices.Contains(names, short) {
		names = append(names, short)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == m.Key })
}

// NotFoundError says that a name belongs to no model, or to several.
type NotFoundError struct {
	Name      string
	Ambiguous []string // the keys that the name may mean
	Known     []string // otherwise: all keys
	Limited   bool     // these are only the keys that the client may use, and there may be such a model
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Ambiguous) > 0:
		return fmt.Sprintf("The model %q is ambiguous: it may be %s.", e.Name, nearest.Listed(e.Name, e.Ambiguous))
	case e.Limited && len(e.Known) == 0:
		return fmt.Sprintf("The model %q is not known, or this API token may not use it. There is none that it may use: ask for another "+
			"token.", e.Name)
	case e.Limited:
		return fmt.Sprintf("The model %q is not known, or this API token may not use it. There are: %s.", e.Name,
			nearest.Listed(e.Name, e.Known))
	case len(e.Known) == 0:
		return fmt.Sprintf("The model %q is not known, and there are no models at all: put GGUF files into the models folder, as "+
			"models/<publisher>/<name>/<file>.gguf.", e.Name)
	default:
		return fmt.Sprintf("The model %q is not known. There are: %s.", e.Name, nearest.Listed(e.Name, e.Known))
	}
}

// Lookup finds a model by its key, in any case, by its key without the publisher if that is unique, or by the first of the other names that
// belongs to a model. If a repository has several variants, a name without a variant means Q4_K_M, or the one that is nearest to it. A
// model that is unknown, broken or changed is looked for on disk again, so new files are found at once; a change is noticed after
// [lookEvery] at most. The error is a [*NotFoundError] about the first name, or the context's.
func (c *Catalog) Lookup(ctx context.Context, name string, others ...string) (Model, error) {
	l, err := c.listing(ctx, false)
	if err != nil {
		return Model{}, err
	}
	if m, err := l.first(name, others); err == nil && m.Err == nil && l.isAsItWas(&m) {
		return m, nil
	}
	if l, err = c.current(ctx); err != nil {
		return Model{}, err
	}
	return l.first(name, others)
}

// Known is like [Catalog.Lookup], but uses the last scan and does no I/O.
func (c *Catalog) Known(name string, others ...string) (Model, error) {
	l := c.last.Load()
	if l == nil {
		return Model{}, &NotFoundError{Name: name}
	}
	return l.first(name, others)
}

// Among finds a model among some, of different keys, by the names by which [Catalog.Known] finds one among all.
func Among(models []Model, name string, others ...string) (Model, error) {
	return newListing(models, nil).first(name, others)
}

// first returns the model with a name, or else with the first of the other names that belongs to one.
func (l *listing) first(name string, others []string) (Model, error) {
	m, err := l.lookup(name)
	if missing, ok := errors.AsType[*NotFoundError](err); ok && len(missing.Ambiguous) == 0 {
		for _, other := range others {
			if m, err := l.lookup(other); err == nil {
				return l.inFormat(m, name), nil
			}
		}
	}
	return m, err
}

// inFormat returns the model of m's repository in the format that a repository's name ends with, or m.
func (l *listing) inFormat(m Model, name string) Model {
	var want Format
	switch name = Normal(name); {
	case strings.HasSuffix(name, "-mlx"):
		want = FormatMLX
	case strings.HasSuffix(name, "-gguf"):
		want = FormatGGUF
	default:
		return m
	}
	if m.Format == want {
		return m
	}
	repo, _, _ := strings.Cut(m.Key, "@")
	same := l.byName[repo]
	if i, ok := l.byKey[repo]; ok {
		same = append(slices.Clone(same), i)
	}
	for _, i := range same {
		if other := l.models[i]; other.Format == want && other.Err == nil {
			return other
		}
	}
	return m
}

// LookupOnly is like [Catalog.Lookup], but accepts a name without a variant only if there is one variant.
func (c *Catalog) LookupOnly(ctx context.Context, name string, others ...string) (Model, error) {
	m, err := c.Lookup(ctx, name, others...)
	if err != nil || !strings.Contains(m.Key, "@") || strings.Contains(name, "@") {
		return m, err
	}
	l, err := c.listing(ctx, false)
	if err != nil {
		return Model{}, err
	}
	repo, _, _ := strings.Cut(m.Key, "@")
	missing := &NotFoundError{Name: name}
	for _, i := range l.byName[repo] {
		missing.Ambiguous = append(missing.Ambiguous, l.models[i].Key)
	}
	if len(missing.Ambiguous) < 2 {
		return m, nil
	}
	return Model{}, missing
}

// lookEvery is how often a model's file is looked at, however many requests there are.
const lookEvery = 20 * time.Millisecond

func (l *listing) isAsItWas(m *Model) bool {
	if m.IsRemote {
		return true
	}
	if at, ok := l.unchanged.Load(m.Path); ok && time.Since(at.(time.Time)) < lookEvery {
		return true
	}
	info, err := os.Stat(m.Path)
	if err != nil || m.Format != FormatMLX && !info.ModTime().Equal(m.Changed) {
		return false
	}
	l.unchanged.Store(m.Path, time.Now())
	return true
}

func (l *listing) lookup(name string) (Model, error) {
	want := Normal(name)
	if i, ok := l.byKey[want]; ok {
		return l.models[i], nil
	}
	all := l.byName[want]
	if len(all) == 1 {
		return l.models[all[0]], nil
	}
	var near, broken []Model
	for _, i := range all {
		if m := l.models[i]; m.Err == nil {
			near = append(near, m)
		} else {
			broken = append(broken, m)
		}
	}
	if len(near) == 0 {
		near = broken
	}
	if i, ok := plainOf(near); ok {
		return near[i], nil
	}
	err := &NotFoundError{Name: name}
	for _, m := range near {
		err.Ambiguous = append(err.Ambiguous, m.Key)
	}
	if len(near) == 0 {
		err.Known = l.known
	}
	return Model{}, err
}

// plainOf chooses among the models that share a name: the one without a variant if all are of one repository, or else the one that is
// nearest to Q4_K_M, which most people get. It chooses none if they are of several repositories.
func plainOf(near []Model) (int, bool) {
	if len(near) == 0 {
		return 0, false
	}
	first, _, _ := strings.Cut(near[0].Key, "@")
	usual, best := -1, 0.0
	for i, m := range near {
		repo, _, hasVariant := strings.Cut(m.Key, "@")
		if repo != first {
			return 0, false
		}
		far := math.Abs(m.Quantization.BitsPerWeight - usualBits)
		switch {
		case !hasVariant:
			far = -2
		case m.Quantization.Name == "Q4_K_M":
			far = -1
		}
		if usual < 0 || far < best || far == best && m.Changed.Before(near[usual].Changed) {
			usual, best = i, far
		}
	}
	return usual, true
}

// usualBits is how many bits Q4_K_M has for each weight.
const usualBits = 4.85

// local is the publisher of files outside of a publisher's folder.
const local = "local"

// Key returns the key of a publisher's repository, which is the key of its model if it holds only one.
func Key(publisher, repo string) string {
	return unsafeInKeys.Replace(Normal(publisher) + "/" + withoutFormat(Normal(repo)))
}

// withoutFormat removes the ending of a repository's name that gives the format of its models.
func withoutFormat(repo string) string { return filename.TrimEnding(repo, "-gguf", "-mlx") }

// Normal returns a name in the form in which names are compared, which is that of keys: without spaces around it, in lower case, and
// composed (NFC). The names of folders on some systems are decomposed, and so is what people copy from there.
func Normal(name string) string { return norm.NFC.String(strings.ToLower(strings.TrimSpace(name))) }

// unsafeInKeys replaces characters that have a meaning in keys or instance IDs.
var unsafeInKeys = strings.NewReplacer("@", "-", ":", "-", ",", "-", " ", "-")

// repository returns the publisher and the repository of a file, given the folders between a root and the file, and the number
// of these folders that are within the repository. repo is empty for a file directly in the root.
func repository(dirs []string) (publisher, repo string, within int) {
	n := len(dirs)
	switch {
	case n > 2 && filename.FolderRole(dirs[n-1]) != "":
		publisher, repo, within = repository(dirs[:n-1])
		return publisher, repo, within + 1
	case n == 0:
		return local, "", 0
	case n == 1:
		return local, dirs[0], 0
	case n > 2 && isPartOf(dirs[n-1], dirs[n-2]):
		return dirs[n-3], dirs[n-2], 1
	default:
		return dirs[n-2], dirs[n-1], 0
	}
}

// isPartOf reports whether a folder holds one quantization of a repository.
func isPartOf(folder, repo string) bool {
	name, quantization := filename.TrimQuantization(folder)
	return quantization != "" && (name == "" || Normal(name) == withoutFormat(Normal(repo)))
}

// withoutQuantization removes a quantization at the end of a file's name: tiny-f16 and tiny.Q4_K_M become tiny.
func withoutQuantization(name, quantization string) string {
	if quantization == "" || len(name) <= len(quantization)+1 {
		return name
	}
	cut := len(name) - len(quantization)
	if strings.EqualFold(name[cut:], quantization) && strings.ContainsRune("-._", rune(name[cut-1])) {
		return name[:cut-1]
	}
	return name
}

// labelled is a model with the name of its file, and the variant in its key.
type labelled struct {
	Model
	label, variant, scope string
}

// variantOf returns the variant that a model's quantization makes, or "". GGUF files and MLX folders of one repository share some
// quantizations, such as F16.
func variantOf(m *Model) string {
	name := Normal(m.Quantization.Name)
	if m.Format == FormatMLX && name != "" && !strings.HasSuffix(name, "bit") {
		return "mlx-" + name
	}
	return name
}

// withVariants appends variants to the keys of models that share a repository: the quantization, or else the one in the file's
// name, or else that whole name. Variants in taken are avoided if possible.
func withVariants(models []labelled, taken map[string]bool) {
	inHeader, inName, chosen := map[string]int{}, map[string]int{}, map[string]int{}
	named := make([]string, len(models))
	for i, m := range models {
		_, quantization := filename.TrimQuantization(m.label)
		named[i] = Normal(quantization)
		inHeader[variantOf(&m.Model)]++
		inName[named[i]]++
	}
	suffixes := make([]string, len(models))
	for i, m := range models {
		switch header, name := variantOf(&m.Model), named[i]; {
		case header != "" && inHeader[header] == 1:
			suffixes[i] = header
		case name != "" && inName[name] == 1:
			suffixes[i] = name
		default:
			suffixes[i] = Normal(m.label)
		}
		chosen[suffixes[i]]++
	}
	for i := range models {
		suffix := suffixes[i]
		if chosen[suffix] > 1 || taken[suffix] {
			suffix = Normal(models[i].label)
		}
		models[i].variant = unsafeInKeys.Replace(suffix)
		models[i].Key += "@" + models[i].variant
	}
}
