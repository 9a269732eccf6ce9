package catalog

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/chattemplate"
	"github.com/lmcaddy/lmcaddy/catalog/mlx"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// mlxFolder adds a folder that may be an MLX model. Its time is that of its newest file.
func (w *walk) mlxFolder(p location, list *folderList, of found) error {
	of.path, of.format, of.label = p.dir, FormatMLX, filepath.Base(p.dir)
	var state strings.Builder
	for _, e := range list.entries {
		if e.kind.IsDir() || !mlx.IsFile(e.name) {
			continue
		}
		info, err := os.Stat(filepath.Join(p.dir, e.name))
		if err != nil {
			w.catalog.report(filepath.Join(p.dir, e.name), err)
			continue
		}
		if e.name == mlx.ConfigFile {
			of.info = info
		}
		if mlx.IsWeights(e.name) {
			of.size += info.Size()
		}
		if info.ModTime().After(of.changed) {
			of.changed = info.ModTime()
		}
		fmt.Fprintf(&state, "%s %d %d\n", e.name, info.Size(), info.ModTime().UnixNano())
	}
	if of.size == 0 {
		return nil
	}
	of.parts = state.String()
	return w.add(of)
}

// readMLX describes an MLX model. A folder with weights for another engine isn't one.
func (h *header) readMLX(f *found) error {
	var config mlx.Config
	if err := boundedfile.ReadJSON(filepath.Join(f.path, mlx.ConfigFile), mlx.MaxConfig, &config); err != nil {
		h.model.Role = roleOther // there is none, or it is another program's
		return nil
	}
	weights, err := mlx.ReadWeights(f.path)
	named := strings.Contains(Normal(f.repo+"/"+filepath.Base(f.path)), "mlx")
	if !weights.IsMLX && config.Quantization == nil && !named && !mlx.CardSaysMLX(f.path) {
		h.model.Role = roleOther
		return nil
	}
	if err != nil {
		return err
	}
	m := &h.model
	tokenizer := mlx.ReadTokenizer(f.path)
	m.Architecture = config.ModelType
	m.MaxContextLength = cmp.Or(config.ContextLength(), tokenizer.MaxLength())
	m.Parameters = cmp.Or(weights.Declared, weights.Parameters(config.StoredAs()))
	m.Quantization = Quantization{Name: cmp.Or(config.StoredAs().CommonName(), weights.Widest())}
	if m.Parameters > 0 {
		bits := float64(weights.Bytes) * 8 / float64(m.Parameters)
		m.Quantization.BitsPerWeight = math.Round(bits*100) / 100
	}
	m.Vocabulary = cmp.Or(weights.Vocabulary(), config.Vocabulary())
	m.Experts, m.ExpertsUsed = config.Experts()
	m.HasCode = config.HasCode()
	m.Type = TypeLLM
	if embeds(f, config.ModelType) {
		m.Type = TypeEmbedding
		return nil
	}
	m.Template = chattemplate.Hash(tokenizer.Text)
	m.ToolUse, m.Reasoning = tokenizer.CallsTools(), tokenizer.ReasoningIn(f.path)
	return nil
}

// mlxEmbedders are the types of embedding models.
var mlxEmbedders = []string{"bert", "xlm-roberta", "modernbert", "nomic_bert", "roberta", "mpnet"}

// embeds reports whether a model is for embeddings. Those made of a chat model have its type, but a list of modules, or at
// least a name that says so.
func embeds(f *found, kind string) bool {
	if slices.Contains(mlxEmbedders, kind) || strings.Contains(Normal(f.repo+"/"+filepath.Base(f.path)), "embed") {
		return true
	}
	_, err := os.Stat(filepath.Join(f.path, mlx.ModulesFile))
	return err == nil
}

// mlxMemory returns the memory that an MLX model takes. Figures that the configuration lacks make the cache a guess.
func mlxMemory(m *Model, s Shape) (Memory, error) {
	var config mlx.Config
	if err := boundedfile.ReadJSON(filepath.Join(m.Path, mlx.ConfigFile), mlx.MaxConfig, &config); err != nil {
		return Memory{}, fmt.Errorf("its %s can't be read", mlx.ConfigFile)
	}
	layers := config.LanguageModel()
	slots := float64(max(1, s.Parallel))
	context := cmp.Or(max(0, s.ContextLength), m.MaxContextLength)
	tokens := max(1, math.Ceil(float64(context)/mlx.CacheStep)) * mlx.CacheStep

	cache, ok := layers.Cache(config.ModelType, tokens)
	if !ok {
		cache = float64(m.SizeBytes) / 10
	}
	hidden, inner := float64(layers.HiddenSize()), float64(layers.FeedForward)
	step := min(tokens, mlx.PromptStep)
	return Memory{
		Weights: m.SizeBytes,
		KVCache: bounded(cache * slots),
		Compute: bounded(step*layers.BytesPerNumber()*(4*hidden+3*inner) + 4*slots*float64(m.Vocabulary)),
		Rough:   !ok,
	}, nil
}
