package catalog

import (
	"fmt"
	"strings"
	"time"
)

// Model is what is known of a model without loading it.
type Model struct {
	Key         string   // <publisher>/<repo>, lower case, with @<quantization> where the repo has several
	Variants    []string // what may follow the @ in its names, the best first, even where its repo has no other model
	Publisher   string
	DisplayName string

	Path      string // of the model's file, the first of a split one, or of its folder; as absolute as the catalog's folders
	Projector string // of the file with which it sees or hears; empty without one
	SizeBytes int64  // of all its files, but for the projector
	Changed   time.Time
	Layout    Layout // whose order its files are kept in

	Format           Format
	Type             Type
	Architecture     string // as the engine knows it, e.g. "llama"
	Quantization     Quantization
	Parameters       int64
	SizeLabel        string // the publisher's own word for the number of parameters, e.g. "8x7B"; may be empty
	MaxContextLength int    // in tokens
	Description      string // the publisher's own; may be empty
	ToolUse          bool   // its chat template takes tools
	Vision           bool   // it takes images
	Reasoning        Reasoning

	Experts     int     // of a mixture of experts; 0: it is dense
	ExpertsUsed int     // for each token, unless a load says otherwise
	Pooling     Pooling // how it makes one vector of many tokens; empty where the file doesn't say
	Reranker    bool    // it ranks documents for a query; its Type is embedding

	// Err says why the file can't be used. Then only what doesn't come from its header is known.
	Err error `json:"-"`
}

// FullKey is the key with a variant, which stays the same when other models of its repository come or go.
func (m Model) FullKey() string {
	if strings.Contains(m.Key, "@") || len(m.Variants) == 0 {
		return m.Key
	}
	return m.Key + "@" + m.Variants[0]
}

// Layout is the order that a model's files are kept in: whose they are.
type Layout string

// The layouts.
const (
	LayoutPlain  Layout = "plain"  // <publisher>/<repo>/<file>: ours, LM Studio's, and anything else
	LayoutHub    Layout = "hub"    // the Hugging Face hub's cache: models--<publisher>--<repo>/snapshots/<revision>/<file>
	LayoutCache  Layout = "cache"  // llama.cpp's cache: <publisher>_<repo>_<file>
	LayoutOllama Layout = "ollama" // Ollama's store: manifests/<registry>/<publisher>/<name>/<tag>, and blobs
)

// Type is what a model is for.
type Type string

// The types, in the words of the native v1 API.
const (
	TypeLLM       Type = "llm"
	TypeEmbedding Type = "embedding"
)

// Pooling is how a model makes one vector, or one number, of many tokens. The words are llama.cpp's.
type Pooling string

// The ways of pooling.
const (
	PoolingNone Pooling = "none"
	PoolingMean Pooling = "mean"
	PoolingCLS  Pooling = "cls"
	PoolingLast Pooling = "last"
	PoolingRank Pooling = "rank" // one number: a reranker's
)

// Quantization is how a model's weights are stored.
type Quantization struct {
	Name          string  // e.g. "Q4_K_M"
	BitsPerWeight float64 // on average, but for what stays in 32 bits in any quantization
}

// ParamsString is the number of parameters as people say it, e.g. "7B"; empty where it isn't known.
func (m Model) ParamsString() string {
	if m.SizeLabel != "" {
		return m.SizeLabel
	}
	n := float64(m.Parameters)
	switch {
	case n <= 0:
		return ""
	case n < 1e6:
		return fmt.Sprintf("%.0fK", n/1e3)
	case n < 1e9:
		return decimal(n/1e6) + "M"
	default:
		return decimal(n/1e9) + "B"
	}
}

// decimal has one decimal where it says something: 1.9, 7, 13.
func decimal(n float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}
