package command

import (
	"fmt"
	"io"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// newTable writes a table for people: cells end with a tab, rows with a newline. Flush writes it out, and returns the first
// error of writing. The table fits the terminal if out is one, or a page for one.
func newTable(out io.Writer) *terminal.Table { return terminal.NewTable(out) }

// newPage collects what a command prints. Its Flush writes it out.
func newPage(out io.Writer) *terminal.Page { return terminal.NewPage(out) }

// wrapped writes a sentence in lines that fit the terminal, if out is one.
func wrapped(out io.Writer, format string, values ...any) error {
	_, err := fmt.Fprintln(out, terminal.Wrap(terminal.Line(fmt.Sprintf(format, values...)), columnsOf(out), 0))
	return err
}

// orDash is a cell's text, or a dash where there is none.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
