package catalog

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Files describes how to find and read models of another format, in which each model is one file.
type Files struct {
	Format Format
	Ending string // of the file names, such as ".onnx"
	// Read sets the fields that come from a file's header, such as the type and the architecture. The path, size and time
	// are already set. The error says why the file can't be used.
	Read func(path string) (Model, error)
}

// SetFiles adds further formats. It must be called at most once, before the catalog is used.
func (c *Catalog) SetFiles(files ...Files) {
	c.change(func(to *config) { to.files = files })
}

// filesOf returns how to read a file as a model, judged by its name, and whether it is one.
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

// readBy describes a model by the reader of its format.
func (h *header) readBy(read func(path string) (Model, error), path string) error {
	m, err := read(path)
	m.Format, m.SizeBytes, m.Changed = h.model.Format, h.model.SizeBytes, h.model.Changed
	h.model = m
	return err
}
