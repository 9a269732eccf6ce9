package catalog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// summaryVersion must be incremented when headers are read differently.
const summaryVersion = 4

// saveEvery is the shortest interval between writes of the summary.
const saveEvery = 30 * time.Second

// summary is a file that caches the headers: a line with its version, then a line for each file. If it is missing, damaged or
// of another version, the headers are read from the models.
type summary struct {
	path    string
	wasRead bool
	dirty   bool // some headers haven't been saved
	at      time.Time
}

type (
	summaryHead struct {
		Version int `json:"lmcaddy_catalog"`
	}
	// summaryLine is the header of a file, with its path.
	summaryLine struct {
		Path    string `json:"path"`
		Size    int64  `json:"size"`
		Changed int64  `json:"changed"` // in nanoseconds since 1970
		Parts   string `json:"parts,omitempty"`
		Reason  string `json:"reason,omitempty"`
		Model   Model  `json:"model"`
	}
)

// SetSummary sets the file that caches headers over restarts. It does no I/O, and must be called before any other method.
func (c *Catalog) SetSummary(path string) { c.saved = summary{path: path} }

// Save writes the summary if anything has changed. A scan also writes it, but not often.
func (c *Catalog) Save() {
	c.scanning <- struct{}{}
	defer c.end()
	c.saved.write(c.headers, true, c.log)
}

// read returns the headers in the summary when it is called for the first time.
func (s *summary) read(log *slog.Logger) map[string]header {
	if s.path == "" || s.wasRead {
		return nil
	}
	s.wasRead = true
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		var headers map[string]header
		if headers, err = readSummary(f); err == nil {
			return headers
		}
	}
	log.Info("the summary of the models can't be used: all headers are read again", "file", s.path, "reason", err)
	return nil
}

func readSummary(f io.Reader) (map[string]header, error) {
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	var head summaryHead
	if err := d.Decode(&head); err != nil {
		return nil, err
	}
	if head.Version != summaryVersion {
		return nil, fmt.Errorf("it has version %d, not %d", head.Version, summaryVersion)
	}
	headers := map[string]header{}
	for {
		var line summaryLine
		switch err := d.Decode(&line); {
		case errors.Is(err, io.EOF):
			return headers, nil
		case err != nil:
			return nil, err
		}
		h := header{size: line.Size, parts: line.Parts, model: line.Model}
		h.model.Changed = time.Unix(0, line.Changed)
		if line.Reason != "" {
			h.model.Err = errors.New(line.Reason)
		}
		headers[line.Path] = h
	}
}

// write writes the summary if anything has changed and it wasn't written recently. An error is logged, and the next call
// tries again.
func (s *summary) write(headers map[string]header, now bool, log *slog.Logger) {
	if s.path == "" || !s.dirty || !now && time.Since(s.at) < saveEvery {
		return
	}
	s.at = time.Now()
	if err := atomicfile.WriteFile(s.path, 0o600, func(w io.Writer) error { return writeSummary(w, headers) }); err != nil {
		log.Warn("the summary of the models can't be written: the next start takes longer", "file", s.path, "reason", err)
		return
	}
	s.dirty = false
}

func writeSummary(w io.Writer, headers map[string]header) error {
	e := json.NewEncoder(w)
	if err := e.Encode(summaryHead{summaryVersion}); err != nil {
		return err
	}
	for path, h := range headers {
		if h.unread {
			continue
		}
		line := summaryLine{Path: path, Size: h.size, Changed: h.model.Changed.UnixNano(), Parts: h.parts, Model: h.model}
		if h.model.Err != nil {
			line.Reason = h.model.Err.Error()
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
