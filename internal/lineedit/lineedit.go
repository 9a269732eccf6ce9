// Package lineedit reads questions from a terminal: with editing, a history, and several lines in one question.
//
// A question has several lines if they are pasted, if Alt-Enter was pressed between them, if a line ends in a backslash, or between
// two lots of three double quotes.
package lineedit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"
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

const (
	// longestShown is how many bytes of a pasted text are shown, and mostLinesShown how many of its lines. A longer text is named
	// instead, which leaves room for the question about it. So is one with tabs, which the text area would replace.
	longestShown   = 2000
	mostLinesShown = 16
)

// pastes are the long texts that were pasted into a question, by the names that stand for them there.
type pastes struct {
	names, texts []string
}

// shorten returns what is shown of a pasted text: the text, or a name that stands for it. Characters that control a terminal are
// left out of both.
func (p *pastes) shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	lines := 1 + strings.Count(strings.TrimRight(text, "\n"), "\n")
	if len(text) <= longestShown && lines <= mostLinesShown && !strings.Contains(text, "\t") {
		return text
	}
	name := fmt.Sprintf("[paste %d: %s in %d lines]", len(p.names)+1, humanize.Bytes(uint64(len(text))), lines)
	if lines == 1 {
		name = fmt.Sprintf("[paste %d: %s]", len(p.names)+1, humanize.Bytes(uint64(len(text))))
	}
	p.names, p.texts = append(p.names, name), append(p.texts, text)
	return name
}

// restore returns a question with the texts instead of their names.
func (p *pastes) restore(question string) string {
	if len(p.names) == 0 {
		return question
	}
	var pairs []string
	for i := range p.names {
		pairs = append(pairs, p.names[i], p.texts[i])
	}
	return strings.NewReplacer(pairs...).Replace(question)
}
