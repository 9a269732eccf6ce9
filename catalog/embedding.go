package catalog

import (
	"cmp"
	"regexp"
	"slices"

	gguf "github.com/gpustack/gguf-parser-go"
)

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

// makesEmbeddings decides whether a model makes embeddings by its header: by its pooling, because each token sees all others, or, if it says nothing
// of pooling, by its names and tags. Models that only write have no pooling, and converters have forgotten that of others.
func makesEmbeddings(m *Model, f *gguf.GGUFFile) bool {
	p, hasSome := pooling(f)
	m.Pooling = p
	if slices.Contains(diffusion, m.Architecture) {
		return false
	}
	if hasSome || !isCausal(f) || slices.Contains(encoders, m.Architecture) {
		return true
	}
	tags := tagsOf(f)
	isTagged := func(with []string) bool {
		return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(with, tag) })
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

// becomeEmbedding makes an embedding model of one whose header says nothing of pooling, if the name of its file or repository says that it is one.
func becomeEmbedding(m *Model, names ...string) {
	isNamed := func(name string) bool { return embeddingWord.MatchString(name) }
	if m.Type == TypeLLM && m.Pooling == "" && slices.ContainsFunc(names, isNamed) {
		m.Type, m.Pooling, m.Reasoning = TypeEmbedding, PoolingLast, Reasoning{}
	}
}

// isCausal reports whether each token sees only those before it, as the header says. The parser guesses it from the pooling.
func isCausal(f *gguf.GGUFFile) bool {
	kv, ok := f.Header.MetadataKV.Get(text(f, "general.architecture") + ".attention.causal")
	return !ok || kv.ValueType != gguf.GGUFMetadataValueTypeBool || kv.ValueBool()
}

// tagsOf returns the hub's tags of a model.
func tagsOf(f *gguf.GGUFFile) (tags []string) {
	kv, ok := f.Header.MetadataKV.Get("general.tags")
	if !ok || kv.ValueType != gguf.GGUFMetadataValueTypeArray || kv.ValueArray().Type != gguf.GGUFMetadataValueTypeString {
		return nil
	}
	for _, tag := range kv.ValueArray().Array {
		tags = append(tags, tag.(string))
	}
	return tags
}
