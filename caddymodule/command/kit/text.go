package kit

import (
	"fmt"
	"io"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
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

// Wrapped writes a sentence in lines that fit the terminal, if out is one.
func Wrapped(out io.Writer, format string, values ...any) error {
	_, err := fmt.Fprintln(out, terminal.Wrap(terminal.Line(fmt.Sprintf(format, values...)), terminal.Columns(out), 0))
	return err
}

// OrDash is a cell's text, or a dash where there is none.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
