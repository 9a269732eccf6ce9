package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of an MLX model that describe it.
const (
	mlxConfigFile     = "config.json"
	mlxIndexFile      = "model.safetensors.index.json"
	mlxChatFile       = "tokenizer_config.json"
	mlxTemplateFile   = "chat_template.jinja"
	mlxVocabularyFile = "tokenizer.json"
	mlxModulesFile    = "modules.json" // of embedding models
	mlxCardFile       = "README.md"
)

// The sizes up to which they are read, in bytes.
const (
	maxMLXFile   = 64 << 20
	maxMLXConfig = 4 << 20 // the longest have an entry for each module
	maxMLXCard   = 16 << 10
)

var mlxFiles = []string{
	mlxConfigFile, mlxIndexFile, mlxChatFile, mlxTemplateFile, mlxVocabularyFile, mlxModulesFile, mlxCardFile,
}

// isMLXFile reports whether a name may be that of a file of an MLX model.
func isMLXFile(name string) bool {
	return slices.Contains(mlxFiles, name) || isWeights(name)
}

// isWeights reports whether the engine would load a file as weights.
func isWeights(name string) bool {
	return strings.HasPrefix(name, "model") && strings.HasSuffix(name, ".safetensors")
}

// mlxFolder adds a folder that may be an MLX model. Its time is that of its newest file.
func (w *walk) mlxFolder(p location, list *folderList, of found) error {
	of.path, of.format, of.label = p.dir, FormatMLX, filepath.Base(p.dir)
	var state strings.Builder
	for _, e := range list.entries {
		if e.kind.IsDir() || !isMLXFile(e.name) {
			continue
		}
		info, err := os.Stat(filepath.Join(p.dir, e.name))
		if err != nil {
			w.catalog.report(filepath.Join(p.dir, e.name), err)
			continue
		}
		if e.name == mlxConfigFile {
			of.info = info
		}
		if isWeights(e.name) {
			of.size += info.Size()
		}
		if info.ModTime().After(of.changed) {
			of.changed = info.ModTime()
		}
		fmt.Fprintf(&state, "%s %d %d\n", e.name, info.Size(), info.ModTime().UnixNano())
	}
	if of.size == 0 || of.info == nil {
		return nil
	}
	of.parts = state.String()
	return w.add(of)
}

// readMLX describes an MLX model. A folder with weights for another engine isn't one.
func (h *header) readMLX(f *found) error {
	var config mlxConfig
	if err := readJSON(filepath.Join(f.path, mlxConfigFile), maxMLXConfig, &config); err != nil {
		h.model.Role = roleOther // many programs have a file of this name
		return nil
	}
	weights, err := readWeights(f.path)
	named := strings.Contains(Normal(f.repo+"/"+filepath.Base(f.path)), "mlx")
	if !weights.isMLX && config.Quantization == nil && !named && !saysMLX(f.path) {
		h.model.Role = roleOther
		return nil
	}
	if err != nil {
		return err
	}
	h.describeMLX(f, config, weights)
	return nil
}

// saysMLX reports whether a folder's model card names the library. Only the start of the card is read.
func saysMLX(dir string) bool {
	text, err := readStart(filepath.Join(dir, mlxCardFile), maxMLXCard)
	if err != nil {
		return false
	}
	head, ok := strings.CutPrefix(string(text), "---\n")
	if !ok {
		return false
	}
	head, _, _ = strings.Cut(head, "\n---")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(line, ":")
		if key == "library_name" {
			return strings.Trim(value, " \t\r\n\"'") == "mlx"
		}
	}
	return false
}

func (h *header) describeMLX(f *found, config mlxConfig, weights weights) {
	m := &h.model
	tokenizer := readTokenizer(f.path)
	m.Architecture = config.ModelType
	m.MaxContextLength = cmp.Or(config.contextLength(), tokenizer.maxLength())
	m.Parameters = cmp.Or(weights.declared, weights.parameters(config.quantization()))
	m.Quantization = Quantization{Name: cmp.Or(config.quantization().name(), weights.widest())}
	if m.Parameters > 0 {
		bits := float64(weights.bytes) * 8 / float64(m.Parameters)
		m.Quantization.BitsPerWeight = math.Round(bits*100) / 100
	}
	m.Vocabulary = cmp.Or(weights.vocabulary(), config.vocabulary())
	m.Experts, m.ExpertsUsed = config.experts()
	m.HasCode = config.hasCode()
	m.Type = TypeLLM
	if embeds(f, config.ModelType) {
		m.Type = TypeEmbedding
		return
	}
	m.Template = templateHash(tokenizer.template)
	m.ToolUse, m.Reasoning = tokenizer.takesTools(), tokenizer.reasoning(f.path)
}

// mlxEmbedders are the types of embedding models.
var mlxEmbedders = []string{"bert", "xlm-roberta", "modernbert", "nomic_bert", "roberta", "mpnet"}

// embeds reports whether a model is for embeddings. Those made of a chat model have its type, but a list of modules, or at
// least a name that says so.
func embeds(f *found, kind string) bool {
	if slices.Contains(mlxEmbedders, kind) || strings.Contains(Normal(f.repo+"/"+filepath.Base(f.path)), "embed") {
		return true
	}
	_, err := os.Stat(filepath.Join(f.path, mlxModulesFile))
	return err == nil
}

var errNoWeights = errors.New("it has no weights; fetch it again")
