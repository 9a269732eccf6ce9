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
	mlxConfigFile   = "config.json"
	mlxIndexFile    = "model.safetensors.index.json"
	mlxChatFile     = "tokenizer_config.json"
	mlxTemplateFile = "chat_template.jinja"
	mlxModulesFile  = "modules.json" // of embedding models
	maxMLXFile      = 64 << 20       // bytes
)

var mlxFiles = []string{mlxConfigFile, mlxIndexFile, mlxChatFile, mlxTemplateFile, mlxModulesFile}

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
func (h *header) readMLX(dir string) error {
	var config mlxConfig
	if err := readJSON(filepath.Join(dir, mlxConfigFile), maxMLXFile, &config); err != nil {
		h.kind = kindOther // many programs have a file of this name
		return nil
	}
	weights, err := readWeights(dir)
	if !weights.isMLX && config.Quantization == nil && !strings.Contains(normal(filepath.Base(dir)), "mlx") {
		h.kind = kindOther
		return nil
	}
	if err != nil {
		return err
	}
	h.describeMLX(dir, config, weights)
	return nil
}

func (h *header) describeMLX(dir string, config mlxConfig, weights weights) {
	m := &h.model
	m.Architecture = config.ModelType
	m.MaxContextLength = config.contextLength()
	m.Parameters = cmp.Or(weights.declared, weights.parameters(config.quantization()))
	m.Quantization = Quantization{Name: cmp.Or(config.quantization().name(), weights.widest())}
	if m.Parameters > 0 {
		bits := float64(weights.bytes) * 8 / float64(m.Parameters)
		m.Quantization.BitsPerWeight = math.Round(bits*100) / 100
	}
	m.Experts, m.ExpertsUsed = config.experts()
	m.Vision = config.Vision != nil && weights.sees
	m.Type = TypeLLM
	if _, err := os.Stat(filepath.Join(dir, mlxModulesFile)); err == nil || slices.Contains(mlxEmbedders, config.ModelType) {
		m.Type = TypeEmbedding
		return
	}
	template := mlxTemplate(dir)
	m.ToolUse, m.Reasoning = takesTools(template), reasoningOf(template)
}

// mlxEmbedders are the types of embedding models.
var mlxEmbedders = []string{"bert", "xlm-roberta", "modernbert", "nomic_bert", "roberta", "mpnet"}

// mlxTemplate returns the chat template in a folder, or "".
func mlxTemplate(dir string) string {
	if text, err := readSmall(filepath.Join(dir, mlxTemplateFile), maxMLXFile); err == nil {
		return string(text)
	}
	var one struct {
		Template string `json:"chat_template"`
	}
	path := filepath.Join(dir, mlxChatFile)
	if err := readJSON(path, maxMLXFile, &one); err == nil {
		return one.Template
	}
	var several struct {
		Templates []struct {
			Template string `json:"template"`
		} `json:"chat_template"`
	}
	var all []string
	if err := readJSON(path, maxMLXFile, &several); err == nil {
		for _, t := range several.Templates {
			all = append(all, t.Template)
		}
	}
	return strings.Join(all, "\n")
}

var errNoWeights = errors.New("it has no weights; fetch it again")
