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

// summaryVersion is raised whenever a header is read differently than before.
const summaryVersion = 2

// saveEvery is how often the summary is written at most.
const saveEvery = 30 * time.Second

// summary is a file that keeps what headers say: after a line with its version, one for each file. It only saves time: one
// that is missing, of another version or damaged is as good as none.
type summary struct {
	path    string
	wasRead bool
	dirty   bool // it lacks what is known
	at      time.Time
}

type (
	summaryHead struct {
		Version int `json:"lmcaddy_catalog"`
	}
	// summaryLine is a header and the path of its file.
	summaryLine struct {
		Path    string `json:"path"`
		Size    int64  `json:"size"`
		Changed int64  `json:"changed"` // in nanoseconds since 1970
		Parts   string `json:"parts,omitempty"`
		Kind    kind   `json:"kind,omitempty"`
		Reason  string `json:"reason,omitempty"`
		Model   Model  `json:"model"`
	}
)

// SetSummary gives the catalog a file for what it has read, so that it needn't be read again after a restart. It does no
// I/O, and is to be called before anything is asked.
func (c *Catalog) SetSummary(path string) { c.saved = summary{path: path} }

// Save writes the summary, if it lacks anything. Without it, that is done after a scan, but not often.
func (c *Catalog) Save() {
	c.scanning <- struct{}{}
	defer c.end()
	c.saved.write(c.headers, true, c.log)
}

// read gives what the summary holds, the first time that it is asked.
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
		return nil, fmt.Errorf("it is of version %d, and %d is wanted", head.Version, summaryVersion)
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
		h := header{
			size: line.Size, changed: time.Unix(0, line.Changed), parts: line.Parts, kind: line.Kind, model: line.Model,
		}
		h.model.Changed = h.changed
		if line.Reason != "" {
			h.err = errors.New(line.Reason)
			h.model.Err = h.err
		}
		headers[line.Path] = h
	}
}

// write replaces the file with what is known, if it lacks anything and wasn't written just now. What goes wrong is told to
// the log, and tried again later.
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
		line := summaryLine{Path: path, Size: h.size, Changed: h.changed.UnixNano(), Parts: h.parts, Kind: h.kind, Model: h.model}
		if h.err != nil {
			line.Reason = h.err.Error()
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
