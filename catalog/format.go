package catalog

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Format is how a model is stored, which decides the engine that runs it.
type Format string

// The formats that the catalog knows by itself.
const (
	FormatGGUF Format = "gguf" // llama.cpp's: a file, or its parts
	FormatMLX  Format = "mlx"  // Apple's: a folder
)

// Files is how models of another format are found and read: each is one file.
type Files struct {
	Format Format
	Ending string // of the files' names, such as ".onnx"
	// Read tells what a file's header says: the type, the architecture and the like. Where the file lies, its size and its
	// time are known. The error says why the file can't be used.
	Read func(path string) (Model, error)
}

// SetFiles says how models of further formats are found. It is to be called once, before anything is asked.
func (c *Catalog) SetFiles(files ...Files) {
	c.change(func(to *config) { to.files = files })
}

// filesOf tells by a file's name how it is to be read as a model; false: it is none.
func (c *config) filesOf(name string) (Files, bool) {
	if filename.IsGGUF(name) {
		return Files{Format: FormatGGUF}, true
	}
	for _, f := range c.files {
		if stem, ok := strings.CutSuffix(name, f.Ending); ok && stem != "" {
			return f, true
		}
	}
	return Files{}, false
}

// readBy describes a model as the engine of its format does.
func (h *header) readBy(read func(path string) (Model, error), path string) error {
	m, err := read(path)
	m.Format, m.SizeBytes, m.Changed = h.model.Format, h.model.SizeBytes, h.model.Changed
	h.model = m
	return err
}
