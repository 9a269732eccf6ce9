package kit

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// Escape sequences of terminals.
const (
	Dim   = terminal.Dim
	Plain = terminal.Plain
)

// OneLine returns a text in one line, without characters that change what a terminal shows: it may come from anywhere.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(terminal.Line(text), "\uFFFD", " ")), " ")
}

// longestNote bounds a note where there is no terminal, in characters.
const longestNote = 400

// Cut shortens a line to a number of columns; 0: longestNote.
func Cut(line string, columns int) string {
	if columns <= 0 {
		columns = longestNote
	}
	return terminal.Cut(line, columns)
}
