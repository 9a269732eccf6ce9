package llamaserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// library is what the files of an engine tell of the models that it knows. It is made of their text: a name that isn't there is surely
// unknown. No option and no endpoint of llama-server lists them, and to try a load takes a process and its memory. Where the files
// aren't as they are expected, nothing is known, and the load tells.
type library struct {
	at   time.Time // when the executable was changed
	size int64

	names   string   // those in the file of the architectures, each with a zero byte behind it; empty: unknown
	heads   string   // of the functions for models that predict several tokens, which have their architecture in it, likewise
	symbols string   // those in the file of the functions for types of tensors, likewise
	known   sync.Map // by architecture: a bool, since looking takes a while
}

const (
	// isLoader is in the file that has the names of the architectures, and isTensors in the one that has the functions for types of
	// tensors.
	isLoader  = "unknown model architecture: '"
	isTensors = "dequantize_row_q4_0\x00"
	// maxLibrary is more than the files have that tell.
	maxLibrary = 64 << 20
)

var libraryName = regexp.MustCompile(`^(lib)?(llama|ggml-base)(\.\d+)*(\.so|\.dylib|\.dll)[.\d]*$`)

// tensorTypes are the names of types of tensors that not every engine in use knows, by their numbers.
var tensorTypes = map[int]string{34: "tq1_0", 35: "tq2_0", 39: "mxfp4", 40: "nvfp4", 41: "q1_0", 42: "q2_0"}

// Knows returns a function that says why the engine can't load a model that is newer than it, or "" as far as is known. It starts
// no process.
func (p *Process) Knows() func(*catalog.Model) string {
	path, err := p.Locate()
	if err != nil {
		return nil
	}
	l := p.libraryOf(path)
	if l == nil || l.names == "" {
		return nil
	}
	return func(m *catalog.Model) string {
		lacks := l.lacks(m)
		if lacks == "" {
			return ""
		}
		return withSentence(lacks, p.tooOld())
	}
}

func (l *library) lacks(m *catalog.Model) string {
	if m.Architecture != "" && !l.knows(m.Architecture) {
		return fmt.Sprintf("unknown architecture %q", m.Architecture)
	}
	if name := tensorTypes[m.NewestType]; name != "" && l.symbols != "" && !strings.Contains(l.symbols, "dequantize_row_"+name+"\x00") {
		return fmt.Sprintf("unknown type of weights %s", name)
	}
	return ""
}

// knows reports whether a name is in the file. It may be the end of a longer one, since linkers put them together.
func (l *library) knows(arch string) bool {
	if known, ok := l.known.Load(arch); ok {
		return known.(bool)
	}
	known := strings.Contains(l.names, arch+"\x00")
	l.known.Store(arch, known)
	return known
}

// Prepare returns an error if the engine doesn't know how the model or its drafter drafts. It would end itself with its help.
func (p *Process) Prepare(ctx context.Context, l *process.Launch) error {
	way, with := l.SelfDraft, "its option draft_model"
	if draft := l.Draft; draft != nil && draft.Drafting != "" {
		way, with = "draft-"+draft.Drafting, draft.Key
	}
	if way == "" {
		return nil
	}
	build, err := p.Probe(ctx)
	if err != nil || flags(build.Flags).drafts(way) {
		return err
	}
	return errors.New(withSentence(fmt.Sprintf("the engine can't draft with %s, which is for %s", with, way), p.tooOld()))
}

// drafts reports whether a build drafts in a way, in its own words.
func (f flags) drafts(way string) bool {
	return slices.Contains(strings.FieldsFunc(f["--spec-type"], func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), way)
}

// Predicts looks for the function for the model's architecture: with others, the engine ends when it is to draft.
func (p *Process) Predicts(m *catalog.Model) bool {
	path, err := p.Locate()
	if err != nil || m.Heads == 0 {
		return false
	}
	known, ok := p.known(path)
	if !ok || !flags(known.build.Flags).drafts(schedule.HeadsDraft) {
		return false
	}
	l := p.libraryOf(path)
	return l != nil && strings.Contains(l.heads, "\x00"+plain.Replace(m.Architecture)+"\x00")
}

// plain takes out what names of architectures and of functions for them differ in.
var plain = strings.NewReplacer("-", "", "_", "")

// headsIn returns the architectures that a library can draft for, with a zero byte around each. The name of their class is in the file,
// even without symbols: "N18llama_model_qwen359graph_mtpE".
func headsIn(content []byte) string {
	const of, function, longest = "llama_model_", "9graph_mtpE", 64
	found := "\x00"
	for {
		at := bytes.Index(content, []byte(function))
		if at < 0 {
			return found
		}
		if before := content[max(0, at-longest):at]; bytes.Contains(before, []byte(of)) {
			found += plain.Replace(string(before[bytes.LastIndex(before, []byte(of))+len(of):])) + "\x00"
		}
		content = content[at+len(function):]
	}
}

// tooOld says what to use instead of the executable in use; "" if that isn't known.
func (p *Process) tooOld() string {
	if p.TooOld == nil {
		return ""
	}
	path, err := p.Locate()
	if err != nil {
		return ""
	}
	known, _ := p.known(path)
	return p.TooOld(known.build.Version)
}

// libraryOf returns what the files of an executable tell; nil if it can't be looked at. They are read once.
func (p *Process) libraryOf(path string) *library {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.libraries[path]; l != nil && l.size == info.Size() && l.at.Equal(info.ModTime()) {
		return l
	}
	l := &library{size: info.Size(), at: info.ModTime()}
	for _, file := range p.librariesOf(path) {
		l.read(file)
	}
	if p.libraries == nil {
		p.libraries = map[string]*library{}
	}
	p.libraries[path] = l
	return l
}

// librariesOf returns the files of an executable that may tell: itself, and libraries in its runtime, or else beside it.
func (p *Process) librariesOf(path string) []string {
	files := []string{path}
	root := p.rootOf(path)
	isShared := root == ""
	if isShared {
		root = path
	}
	root, err := filepath.EvalSymlinks(root) // or the walk would end there
	if err != nil {
		return files
	}
	if isShared {
		root = filepath.Dir(root)
	}
	_ = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error { // what can't be read tells nothing
		switch {
		case err != nil:
			return fs.SkipDir
		case e.IsDir() && isShared && file != root:
			return fs.SkipDir
		case e.Type().IsRegular() && libraryName.MatchString(e.Name()):
			files = append(files, file)
		}
		return nil
	})
	return files
}

func (l *library) read(file string) {
	info, err := os.Stat(file)
	if err != nil || info.Size() > maxLibrary {
		return
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if l.names == "" && bytes.Contains(content, []byte(isLoader)) {
		l.names, l.heads = names(content), headsIn(content)
		if !l.knows("llama") || !l.knows("qwen2") { // the names aren't kept like that
			l.names = ""
		}
	}
	if l.symbols == "" && bytes.Contains(content, []byte(isTensors)) {
		l.symbols = names(content)
	}
}

// names returns the names in lower case that a zero byte ends, with that. A regular expression takes a third of a second for an
// engine's library, at every start of the server.
func names(content []byte) string {
	const longest, nameBytes = 40, "abcdefghijklmnopqrstuvwxyz0123456789_-."
	var all strings.Builder
	for {
		text, rest, isEnded := bytes.Cut(bytes.TrimLeft(content, "\x00"), []byte{0}) // a third of a library is zeros
		if !isEnded {
			return all.String()
		}
		from := len(text)
		for from > 0 && len(text)-from <= longest && strings.IndexByte(nameBytes, text[from-1]) >= 0 {
			from--
		}
		if len(text)-from > 1 {
			all.Write(text[from:])
			all.WriteByte(0)
		}
		content = rest
	}
}
