package catalog

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Model is what is known of a model without loading it.
type Model struct {
	Key         string // <publisher>/<repo>, lower case, with @<quantization> where the repo has several
	Publisher   string
	DisplayName string

	Path      string // of the model's file, the first of a split one; absolute
	Projector string // of the vision projector in the same folder; empty without one
	SizeBytes int64  // of all its files
	Changed   time.Time

	Format           Format
	Type             Type
	Architecture     string // as the engine knows it, e.g. "llama"
	Quantization     Quantization
	Parameters       int64
	SizeLabel        string // the publisher's own word for the number of parameters, e.g. "8x7B"; may be empty
	MaxContextLength int    // in tokens
	ToolUse          bool   // its chat template takes tools

	Experts     int     // of a mixture of experts; 0: it is dense
	ExpertsUsed int     // for each token, unless a load says otherwise
	Pooling     Pooling // how it makes one vector of many tokens; empty where the file doesn't say
	Reranker    bool    // it ranks documents for a query; its Type is embedding

	// Err says why the file can't be used. Then only what doesn't come from its header is known.
	Err error
}

// Format is how a model is stored, which decides the engine that runs it.
type Format string

// FormatGGUF is llama.cpp's.
const FormatGGUF Format = "gguf"

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
	BitsPerWeight float64 // on average, over the whole file
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
		return short(n/1e6) + "M"
	default:
		return short(n/1e9) + "B"
	}
}

// short has one decimal where it says something: 1.9, 7, 13.
func short(n float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

// local is the publisher of files that lie in no publisher's folder.
const local = "local"

// repository is the publisher and the repository of a file, by the folders it lies in below a root.
func repository(rel string, quantization string) (publisher, repo string) {
	dirs := strings.Split(filepath.ToSlash(filepath.Dir(rel)), "/")
	switch n := len(dirs); {
	case dirs[0] == ".":
		return local, withoutQuantization(stem(rel), quantization)
	case n == 1:
		return local, dirs[0]
	default:
		return dirs[n-2], dirs[n-1]
	}
}

// repoKey is the key of a repository: what clients name it by.
func repoKey(publisher, repo string) string {
	repo = normal(repo)
	for _, suffix := range []string{"-gguf", "-mlx"} {
		if short, ok := strings.CutSuffix(repo, suffix); ok && short != "" {
			repo = short
			break
		}
	}
	return normal(publisher) + "/" + repo
}

// normal is a name as keys have it. The signs that mean something in a key or in an instance's id are replaced.
func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

var unsafeInKeys = strings.NewReplacer("@", "-", ":", "-", ",", "-", " ", "-")

func stem(path string) string {
	base := filepath.Base(path)
	return shardSuffix.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "")
}

// withoutQuantization drops a file name's ending that says its quantization: tiny-f16 and tiny.Q4_K_M are tiny.
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
