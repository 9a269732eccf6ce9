// Package model describes models. It reads nothing: package catalog finds models and reads their files.
package model

import (
	"fmt"
	"strings"
	"time"
)

// Model describes a model that isn't loaded.
type Model struct {
	Key         string   // <publisher>/<repo>, lower case, with @<quantization> if the repo has several
	Variants    []string // suffixes that may follow an @ in its names, best first, even if its repo has no other model
	Publisher   string
	DisplayName string

	Path      string // of its file, of the first part, or of its folder; absolute if the catalog's roots are
	Projector string // path of its multimodal projector; may be empty
	SizeBytes int64  // of all its files except the projector
	Changed   time.Time
	Layout    Layout // the program whose folder structure it is in

	Format           Format
	Type             Type
	Architecture     string // the engine's name for it, such as "llama"
	Quantization     Quantization
	NewestType       int // the highest number of a type of its tensors that old engines don't know, as ggml numbers them; 0: there is none
	Parameters       int64
	SizeLabel        string    // the publisher's figure for the number of parameters, such as "8x7B"; may be empty
	MaxContextLength int       // in tokens
	Vocabulary       int       // number of token ids that an MLX model knows, from 0; 0: unknown
	Description      string    // the publisher's; may be empty
	ToolUse          bool      // its chat template supports tools
	Vision           bool      // it accepts images
	Audio            bool      // it accepts recordings
	Reasoning        Reasoning // as far as its file tells
	Template         string    // a hash of its chat template; empty: it has none

	Heads       int     // how many further tokens its own layers predict (MTP), by which it can draft for itself
	Experts     int     // of a mixture of experts; 0: dense
	ExpertsUsed int     // for each token, by default
	Pooling     Pooling // of embeddings; empty if neither the file says it nor the kind of model
	Reranker    bool    // it ranks documents for a query; its Type is embedding
	HasCode     bool    // it names a program of its own (model_file) that its engine would run to build it

	// Role is what the file is for a model, if it isn't one itself: one of the roles in package filename, or "other". See
	// catalog.Companion.
	Role     string
	Drafting string // how a drafter works, in llama.cpp's words, such as "mtp"; empty: like any small model

	IsRemote bool // it is on a remote, and not on this machine: it has no file

	// Err says why the file can't be used. The fields that come from its header are then empty.
	Err error `json:"-"`
}

// FullKey returns the key with a variant. It doesn't change when other models are added to the repository or removed.
func (m Model) FullKey() string {
	if strings.Contains(m.Key, "@") || len(m.Variants) == 0 {
		return m.Key
	}
	return m.Key + "@" + m.Variants[0]
}

// Format is a model's file format, which determines the engine that runs it.
type Format string

// The built-in formats.
const (
	FormatGGUF Format = "gguf" // llama.cpp's: a file, or its parts
	FormatMLX  Format = "mlx"  // Apple's: a folder
)

// Layout is the structure of the folders that a model's files are in.
type Layout string

// The layouts.
const (
	LayoutPlain  Layout = "plain"  // <publisher>/<repo>/<file>: lmcaddy, LM Studio and others
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

// Pooling is the way in which a model computes one vector or number from many tokens. The words are llama.cpp's.
type Pooling string

// The ways of pooling.
const (
	PoolingNone Pooling = "none"
	PoolingMean Pooling = "mean"
	PoolingCLS  Pooling = "cls"
	PoolingLast Pooling = "last"
	PoolingRank Pooling = "rank" // one number, of a reranker
)

// Reasoning describes the choice of reasoning effort that a model offers.
type Reasoning struct {
	// Options are some of the native API's words "off", "low", "medium", "high" and "on", in this order. "on" alone means that the
	// model always thinks; no options mean that it never does, as far as its file says.
	Options []string `json:",omitempty"`
	// Default is the effort that an engine uses by default; empty if unknown.
	Default string `json:",omitempty"`
}

// Quantization says how a model's weights are stored.
type Quantization struct {
	Name          string  // such as "Q4_K_M"
	BitsPerWeight float64 // average, except for weights that have 32 bits in every quantization
}

// ParamsString returns the number of parameters as people write it, such as "7B", or "" if unknown.
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

// decimal formats a number with one decimal, unless that is 0.
func decimal(n float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}
