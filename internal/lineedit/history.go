package lineedit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const (
	// mostQuestions bounds the questions that are kept.
	mostQuestions = 1000
	// longestKept bounds a question that is kept, in bytes: pasted files aren't.
	longestKept = 16 << 10
)

// History has the questions that were asked before, the oldest first. It is kept in a file that only its user can read, one JSON
// string a line.
type History struct {
	path      string // empty: it is only in memory
	questions []string
}

// OpenHistory reads the history in a file, which needn't exist. If the file can't be read, or the path is empty, the history is only
// in memory; the error is why.
func OpenHistory(path string) (*History, error) {
	h := new(History)
	if path == "" {
		return h, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		h.path = path
		return h, nil
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8*longestKept) // a byte takes six in JSON at most
	for lines.Scan() {
		var question string
		if json.Unmarshal(lines.Bytes(), &question) == nil && question != "" {
			h.questions = append(h.questions, question)
		}
	}
	if err := lines.Err(); err != nil {
		return h, err
	}
	h.path = path
	if len(h.questions) > 2*mostQuestions {
		h.questions = h.questions[len(h.questions)-mostQuestions:]
		return h, atomicfile.WriteFile(h.path, 0o600, func(w io.Writer) error {
			for _, question := range h.questions {
				if _, err := w.Write(encoded(question)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return h, nil
}

func encoded(question string) []byte {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(question) // a string, to memory
	return line.Bytes()
}

// Add appends a question, unless it is the last one again.
func (h *History) Add(question string) error {
	if n := len(h.questions); len(question) > longestKept || question == "" || n > 0 && h.questions[n-1] == question {
		return nil
	}
	h.questions = append(h.questions, question)
	if h.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(encoded(question))
	return errors.Join(err, f.Close())
}
