package lineedit

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"
)

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
