// Package mlx reads what the files of an MLX model say: its configuration, the headers of its weights, and its tokenizer. A hostile file is
// an error, and takes bounded time and memory.
package mlx

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// The files of an MLX model that describe it.
const (
	ConfigFile     = "config.json" // without it there is no model
	indexFile      = "model.safetensors.index.json"
	chatFile       = "tokenizer_config.json"
	templateFile   = "chat_template.jinja"
	vocabularyFile = "tokenizer.json"
	ModulesFile    = "modules.json" // of embedding models
	CardFile       = "README.md"
)

// The sizes up to which they are read, in bytes.
const (
	maxFile   = 64 << 20
	MaxConfig = 4 << 20  // of ConfigFile: the longest have an entry for each module
	MaxCard   = 16 << 10 // of CardFile
)

var files = []string{
	ConfigFile, indexFile, chatFile, templateFile, vocabularyFile, ModulesFile, CardFile,
}

// IsFile reports whether a name may be that of a file of an MLX model.
func IsFile(name string) bool {
	return slices.Contains(files, name) || IsWeights(name)
}

// IsWeights reports whether the engine would load a file as weights.
func IsWeights(name string) bool {
	return strings.HasPrefix(name, "model") && strings.HasSuffix(name, ".safetensors")
}

// CardSaysMLX reports whether a folder's model card names the library. Only the start of the card is read.
func CardSaysMLX(dir string) bool {
	text, err := boundedfile.ReadStart(filepath.Join(dir, CardFile), MaxCard)
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

var errNoWeights = errors.New("it has no weights; fetch it again")
