package catalog

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
)

// plan holds what a file's header says about its use of memory. It is immutable.
type plan struct {
	path    string
	size    int64
	changed time.Time

	file    *gguf.GGUFFile // without entries that mislead the parser's estimate
	arch    gguf.GGUFArchitecture
	encoder bool // has no cache
	weights int64
	tokens  int64 // in the vocabulary
	merges  int64

	// The widths of a layer, in values per token.
	feedForward int64 // between its matrices, times the number of copies
	expert      int64 // of one expert, between its matrices
	query       int64
}

// plans caches the plans of recently used files. A caller that estimates a model's memory usually does so again at once,
// with a shorter context.
var plans planCache

// maxPlans bounds the size of the cache. The plans of the largest models take megabytes.
const maxPlans = 8

type planCache struct {
	mu      sync.Mutex
	entries []*plan // most recently used first
}

// of returns the plan of a file. It reads the file unless its plan is cached and the file is unchanged.
func (c *planCache) of(path string) (*plan, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	isIt := func(p *plan) bool { return p.path == path }
	c.mu.Lock()
	var p *plan
	if i := slices.IndexFunc(c.entries, isIt); i >= 0 {
		p = c.entries[i]
	}
	c.mu.Unlock()
	if p == nil || p.size != info.Size() || !p.changed.Equal(info.ModTime()) {
		if p, err = readPlan(path, info); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = slices.Insert(slices.DeleteFunc(c.entries, isIt), 0, p)
	c.entries = c.entries[:min(len(c.entries), maxPlans)]
	return p, nil
}

func readPlan(path string, info os.FileInfo) (p *plan, err error) {
	f, err := parse(path, info.Size())
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its header can't be read: %v", r)
		}
	}()
	p = &plan{path: path, size: info.Size(), changed: info.ModTime(), file: f, arch: f.Architecture()}
	p.encoder = slices.Contains(encoders, p.arch.Architecture)
	if !p.encoder {
		// The parser takes a pooling type as the sign of an encoder, which has no cache, but chat models made for embeddings have
		// one as well, and the engine gives them a cache.
		arch := p.arch.Architecture
		f.Header.MetadataKV = slices.DeleteFunc(f.Header.MetadataKV, func(kv gguf.GGUFMetadataKV) bool {
			return kv.Key == arch+".pooling_type" || kv.Key == arch+".attention.causal"
		})
		p.arch = f.Architecture()
	}
	p.tokens = arrayLength(f, "tokenizer.ggml.tokens")
	p.merges = arrayLength(f, "tokenizer.ggml.merges")
	// If a model has no output matrix, its token embeddings serve as that. For the types below, the engine then stores them twice, because
	// it stores the output in another form.
	weights := f.TensorInfos.Bytes()
	_, separate := f.TensorInfos.Get("output.weight")
	if t, ok := f.TensorInfos.Get("token_embd.weight"); ok && !separate && !p.encoder {
		switch t.Type {
		case gguf.GGMLTypeQ4_0, gguf.GGMLTypeQ4_K, gguf.GGMLTypeQ2_K, gguf.GGMLTypeIQ4_NL:
			weights += t.Bytes()
		}
	}
	p.weights = bounded(float64(weights))
	p.widths()
	return p, nil
}

// encoders are the architectures for which the engine has no cache, because each token attends to all others.
var encoders = []string{
	"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "eurobert",
	"gemma-embedding", "dream", "llada", "llada-moe", "rnd1", "wavtokenizer-dec",
}

// widths finds the widest layers.
func (p *plan) widths() {
	var up, down int64
	gated := false
	for _, t := range p.file.TensorInfos {
		if len(t.Dimensions) < 2 {
			continue
		}
		in, out := width(t.Dimensions[0]), width(t.Dimensions[1])
		switch _, name, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), "."); name {
		case "ffn_up.weight":
			up = max(up, out)
		case "ffn_down.weight":
			down = max(down, in)
		case "ffn_gate.weight":
			gated = true
		case "ffn_down_exps.weight":
			p.expert = max(p.expert, in)
		case "attn_q.weight":
			p.query = max(p.query, out)
		}
	}
	if p.feedForward = down; gated || up > down { // one matrix may contain both halves
		p.feedForward = 3 * down // both halves and their product
	}
}

// maxWidth is the largest plausible width of a tensor or layer.
const maxWidth = 1 << 24

func width(n uint64) int64 { return int64(min(n, maxWidth)) }

// maxBytes bounds every figure, so that no sum overflows.
const maxBytes = 1 << 59

func bounded(bytes float64) int64 {
	if !(bytes > 0) {
		return 0
	}
	return int64(min(bytes, maxBytes))
}

func arrayLength(f *gguf.GGUFFile, key string) int64 {
	kv, ok := f.Header.MetadataKV.Get(key)
	if !ok || kv.ValueType != gguf.GGUFMetadataValueTypeArray {
		return 0
	}
	return int64(min(kv.ValueArray().Len, math.MaxInt32))
}
