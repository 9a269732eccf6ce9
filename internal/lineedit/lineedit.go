// Package lineedit reads questions from a terminal: with editing, a history, and several lines in one question.
//
// A question has several lines if they are pasted, if Alt-Enter was pressed between them, if a line ends in a backslash, or between
// two lots of three double quotes.
package lineedit

import (
	"errors"
	"io"
	"strings"
)

// ErrInterrupted is returned when Ctrl-C is pressed.
var ErrInterrupted = errors.New("interrupted")

// Lines reads questions from what isn't a terminal, or from one without editing.
type Lines struct{ next func() (string, error) }

// NewLines returns a reader of questions, of lines that next returns without their ends.
func NewLines(next func() (string, error)) *Lines { return &Lines{next} }

// Read reads a question, with the error of the function that reads lines. A last question that isn't whole is lost.
func (l *Lines) Read() (string, error) {
	var all strings.Builder
	for {
		line, err := l.next()
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		if isWhole(all.String()) {
			return Join(all.String()), nil
		}
		all.WriteByte('\n')
	}
}

// quotes are around a question of several lines.
const quotes = `"""`

// isWhole reports whether a question is complete, or else goes on with another line.
func isWhole(text string) bool {
	if after, begins := strings.CutPrefix(strings.TrimLeft(text, " \t\n"), quotes); begins {
		return strings.HasSuffix(strings.TrimRight(after, " \t\n"), quotes)
	}
	return !strings.HasSuffix(text, `\`)
}

// Join returns a question as it is meant: without the quotes around it, and without the backslashes at the ends of its lines.
func Join(text string) string {
	trimmed := strings.TrimSpace(text)
	if inner, begins := strings.CutPrefix(trimmed, quotes); begins && isWhole(trimmed) {
		return strings.Trim(strings.TrimSuffix(inner, quotes), "\n")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\\\n", "\n"))
}

// IsEnd reports whether an error of Read says that the input has ended.
func IsEnd(err error) bool { return errors.Is(err, io.EOF) }
