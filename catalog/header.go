package catalog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/lmcaddy/lmcaddy/catalog/chattemplate"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// header is the description of a file, valid for one size and modification time.
type header struct {
	size   int64
	parts  string // state of its other files
	model  Model  // without what depends on the file's location
	unread bool   // it couldn't be opened, which may change without a change of the file
}

func (h header) describes(f *found) bool {
	return !h.unread && h.size == f.size && h.model.Changed.Equal(f.changed) && h.parts == f.parts && h.model.Format == f.format
}

func brokenHeader(f *found, reason error) header {
	m := Model{Format: f.format, SizeBytes: f.size, Changed: f.changed, Err: reason}
	return header{size: f.size, parts: f.parts, model: m}
}

// readHeader reads the description of a file. An error becomes part of the description.
func readHeader(f *found) header {
	h := brokenHeader(f, nil)
	var err error
	switch {
	case f.read != nil:
		h.model, err = f.read(f.path)
		h.model.Format, h.model.SizeBytes, h.model.Changed = f.format, f.size, f.changed
	case f.format == FormatMLX:
		err = h.readMLX(f)
	default:
		err = h.read(f.path)
	}
	_, h.unread = errors.AsType[*fs.PathError](err)
	h.model.Err = err
	return h
}

// read parses the header. A panic of the parser becomes an error.
func (h *header) read(path string) (err error) {
	f, err := parse(path, h.size)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its header can't be read: %v", r)
		}
	}()
	m := &h.model
	m.Role = roleOf(f)
	switch m.Role {
	case "":
	case filename.Drafter:
		m.Drafting = drafting(f)
	case filename.Adapter:
		if text(f, "adapter.type") == "lora" {
			m.Architecture = text(f, "general.architecture")
		}
		return nil
	case filename.Projector:
		arch := f.Architecture()
		m.Audio = arch.ClipHasAudioEncoder
		m.Vision = arch.ClipHasVisionEncoder || !m.Audio
		return nil
	default:
		return nil
	}

	meta, arch := f.Metadata(), f.Architecture()
	m.Architecture, m.DisplayName = meta.Architecture, meta.Name
	m.Type = TypeLLM
	if makesEmbeddings(m, f) {
		m.Type = TypeEmbedding
	}
	m.Reranker = m.Pooling == PoolingRank
	m.Experts, m.ExpertsUsed = int(arch.ExpertCount), int(arch.ExpertUsedCount)
	m.SizeBytes = int64(min(uint64(f.Size), math.MaxInt64))
	m.Parameters = int64(min(uint64(meta.Parameters), math.MaxInt64))
	m.MaxContextLength = int(min(arch.MaximumContextLength, math.MaxInt32))
	m.Quantization = Quantization{Name: quantizationName(f, meta, path), BitsPerWeight: bitsPerWeight(f.TensorInfos)}
	for i := range f.TensorInfos {
		if strings.Contains(f.TensorInfos[i].Name, nextTokens) { // conversions may leave the layers out, and keep their number
			m.Heads = int(arch.NextNPredictLayers)
		}
		if t := int(f.TensorInfos[i].Type); t > oldTypes {
			m.NewestType = max(m.NewestType, t)
		}
	}
	m.SizeLabel = text(f, "general.size_label")
	m.Description = short(text(f, "general.description"))
	template, forTools := text(f, "tokenizer.chat_template"), text(f, "tokenizer.chat_template.tool_use")
	m.ToolUse = chattemplate.TakesTools(template) || forTools != ""
	if m.Type == TypeLLM {
		m.Reasoning, m.Template = chattemplate.Reasoning(template), chattemplate.Hash(template, forTools)
	}
	return nil
}

func truncated(size uint64) error {
	return fmt.Errorf("it is truncated: it has %d bytes, fewer than its header declares; fetch it again", size)
}

// bitsPerWeight returns the average size of the quantized weights. Norms, biases and position embeddings have 32 bits in every
// quantization. They are negligible in a large model, but would be a sixth of the figure in a tiny one.
func bitsPerWeight(tensors gguf.GGUFTensorInfos) float64 {
	var bytes, weights, all uint64
	for i := range tensors {
		n := tensors[i].Elements()
		all += n
		if tensors[i].Type != gguf.GGMLTypeF32 {
			weights += n
			bytes += tensors[i].Bytes()
		}
	}
	if all == 0 {
		return 0
	}
	if weights == 0 || weights < all/2 { // not quantized
		bytes, weights = tensors.Bytes(), all
	}
	return math.Round(float64(bytes)*8/float64(weights)*100) / 100
}

// oldTypes is the highest number of a type of tensors that every engine in use knows: BF16.
const oldTypes = 30

// maxDescription bounds a description, in bytes.
const maxDescription = 1 << 12

func short(s string) string {
	if len(s) <= maxDescription {
		return s
	}
	return strings.ToValidUTF8(s[:maxDescription], "") + "…"
}

// newFileTypes are the names of those that the parser doesn't know, by llama.cpp's numbers, and guessedType is the bit of one that
// a converter has guessed.
var newFileTypes = map[uint32]string{39: "NVFP4", 40: "Q1_0", 41: "Q2_0"}

const guessedType = 1024

// quantizationName returns the quantization that the header names, or else the one in the file's name, or else what most tensors
// have; "" if nothing tells.
func quantizationName(f *gguf.GGUFFile, meta gguf.GGUFMetadata, path string) string {
	said := strings.TrimPrefix(meta.FileTypeDescriptor, "Unknown")
	if kv, ok := f.Header.MetadataKV.Get("general.file_type"); ok {
		n := gguf.ValueNumeric[uint32](kv) &^ guessedType
		if name := newFileTypes[n]; name != "" {
			return name
		}
		switch name := strings.TrimPrefix(gguf.GGUFFileType(n).String(), "MOSTLY_"); {
		case strings.Contains(name, "Type"): // an unknown number
		case n == uint32(meta.FileType):
			return cmp.Or(said, name)
		default:
			return name
		}
	}
	named := filename.LastQuantization(filename.Stem(path))
	if strings.HasPrefix(named, "FP") {
		named = strings.Replace(named, "FP", "F", 1)
	}
	if strings.Contains(said, "Type") { // likewise
		said = ""
	}
	return cmp.Or(named, said)
}

func text(f *gguf.GGUFFile, key string) string {
	kv, ok := f.Header.MetadataKV.Get(key)
	if !ok || kv.ValueType != gguf.GGUFMetadataValueTypeString {
		return ""
	}
	return kv.ValueString()
}

// unspecified is the number of a pooling that a converter didn't know: -1.
const unspecified = 1<<32 - 1

// poolings are the ways of pooling, in the order of their numbers in files.
var poolings = []Pooling{PoolingNone, PoolingMean, PoolingCLS, PoolingLast, PoolingRank}

// pooling returns what a header says of pooling: "" if it says nothing, or something unknown, and whether it says that there is some.
func pooling(f *gguf.GGUFFile) (p Pooling, hasSome bool) {
	kv, ok := f.Header.MetadataKV.Get(text(f, "general.architecture") + ".pooling_type")
	if !ok {
		return "", false
	}
	n := gguf.ValueNumeric[uint32](kv)
	if n < uint32(len(poolings)) { //nolint:gosec // five
		p = poolings[n]
	}
	return p, n != 0 && n != unspecified
}

var (
	// embeddingWord matches the names of models made for embeddings.
	embeddingWord = regexp.MustCompile(`(?i)(^|[^a-z])embed(ding|dings)?([^a-z]|$)`)
	rerankerWord  = regexp.MustCompile(`(?i)(^|[^a-z])rerank(er)?([^a-z]|$)`)

	// embeddingTags are the hub's tags of such models, and textTags those of models that write.
	embeddingTags = []string{"sentence-transformers", "sentence-similarity", "feature-extraction", "text-embeddings-inference"}
	textTags      = []string{"text-generation", "conversational", "image-text-to-text"}
)

// diffusion are architectures whose tokens see each other, too, but that write.
var diffusion = []string{"dream", "llada", "llada-moe", "rnd1"}

// makesEmbeddings decides whether a model makes embeddings by its header: by its pooling, because each token sees all others, or, if it
// says nothing of pooling, by its names and tags. Models that only write have no pooling, and converters have forgotten that of others.
func makesEmbeddings(m *Model, f *gguf.GGUFFile) bool {
	p, hasSome := pooling(f)
	m.Pooling = p
	if slices.Contains(diffusion, m.Architecture) {
		return false
	}
	// Whether each token sees only those before it is what the header says: the parser guesses it from the pooling.
	causal, ok := f.Header.MetadataKV.Get(text(f, "general.architecture") + ".attention.causal")
	seesAll := ok && causal.ValueType == gguf.GGUFMetadataValueTypeBool && !causal.ValueBool()
	if hasSome || seesAll || slices.Contains(encoders, m.Architecture) {
		return true
	}
	var tags []any
	if kv, ok := f.Header.MetadataKV.Get("general.tags"); ok && kv.ValueType == gguf.GGUFMetadataValueTypeArray {
		tags = kv.ValueArray().Array
	}
	isTagged := func(with []string) bool {
		return slices.ContainsFunc(tags, func(tag any) bool { text, _ := tag.(string); return slices.Contains(with, text) })
	}
	_, ranks := f.TensorInfos.Get("cls.output.weight")
	name := cmp.Or(text(f, "general.basename"), m.DisplayName)
	switch {
	case ranks && rerankerWord.MatchString(name+" "+m.DisplayName):
		m.Pooling = PoolingRank
	case embeddingWord.MatchString(name + " " + m.DisplayName), isTagged(embeddingTags) && !isTagged(textTags):
		m.Pooling = PoolingLast // that of models that were made of such that write
	default:
		return false
	}
	return true
}

// summaryVersion must be incremented when headers are read differently.
const summaryVersion = 5

// saveEvery is the shortest interval between writes of the summary.
const saveEvery = 30 * time.Second

// summary is a file that caches the headers: a line with its version, then a line for each file. If it is missing, damaged or
// of another version, the headers are read from the models.
type summary struct {
	path    string
	wasRead bool
	dirty   bool // some headers haven't been saved
	at      time.Time
}

type (
	summaryHead struct {
		Version int `json:"lmcaddy_catalog"`
	}
	// summaryLine is the header of a file, with its path.
	summaryLine struct {
		Path    string `json:"path"`
		Size    int64  `json:"size"`
		Changed int64  `json:"changed"` // in nanoseconds since 1970
		Parts   string `json:"parts,omitempty"`
		Reason  string `json:"reason,omitempty"`
		Model   Model  `json:"model"`
	}
)

// SetSummary sets the file that caches headers over restarts. It does no I/O, and must be called before any other method.
func (c *Catalog) SetSummary(path string) { c.saved = summary{path: path} }

// Save writes the summary if anything has changed. A scan also writes it, but not often.
func (c *Catalog) Save() {
	c.scanning <- struct{}{}
	defer c.end()
	c.saved.write(c.headers, true, c.log)
}

// read returns the headers in the summary when it is called for the first time.
func (s *summary) read(log *slog.Logger) map[string]header {
	if s.path == "" || s.wasRead {
		return nil
	}
	s.wasRead = true
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		var headers map[string]header
		if headers, err = readSummary(f); err == nil {
			return headers
		}
	}
	log.Info("the summary of the models can't be used: all headers are read again", "file", s.path, "reason", err)
	return nil
}

func readSummary(f io.Reader) (map[string]header, error) {
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	var head summaryHead
	if err := d.Decode(&head); err != nil {
		return nil, err
	}
	if head.Version != summaryVersion {
		return nil, fmt.Errorf("it has version %d, not %d", head.Version, summaryVersion)
	}
	headers := map[string]header{}
	for {
		var line summaryLine
		switch err := d.Decode(&line); {
		case errors.Is(err, io.EOF):
			return headers, nil
		case err != nil:
			return nil, err
		}
		h := header{size: line.Size, parts: line.Parts, model: line.Model}
		h.model.Changed = time.Unix(0, line.Changed)
		if line.Reason != "" {
			h.model.Err = errors.New(line.Reason)
		}
		headers[line.Path] = h
	}
}

// write writes the summary if anything has changed and it wasn't written recently. An error is logged, and the next call tries again.
func (s *summary) write(headers map[string]header, now bool, log *slog.Logger) {
	if s.path == "" || !s.dirty || !now && time.Since(s.at) < saveEvery {
		return
	}
	s.at = time.Now()
	if err := atomicfile.WriteFile(s.path, 0o600, func(w io.Writer) error { return writeSummary(w, headers) }); err != nil {
		log.Warn("the summary of the models can't be written: the next start takes longer", "file", s.path, "reason", err)
		return
	}
	s.dirty = false
}

func writeSummary(w io.Writer, headers map[string]header) error {
	e := json.NewEncoder(w)
	if err := e.Encode(summaryHead{summaryVersion}); err != nil {
		return err
	}
	for path, h := range headers {
		if h.unread {
			continue
		}
		line := summaryLine{Path: path, Size: h.size, Changed: h.model.Changed.UnixNano(), Parts: h.parts, Model: h.model}
		if h.model.Err != nil {
			line.Reason = h.model.Err.Error()
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
