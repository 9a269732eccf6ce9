package kit

import (
	"fmt"
	"io"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// NewTable writes a table for people: cells end with a tab, rows with a newline. Flush writes it out, and returns the first
// error of writing. The table fits the terminal if out is one, or a page for one.
func NewTable(out io.Writer) *terminal.Table { return terminal.NewTable(out) }

// NewPage collects what a command prints. Its Flush writes it out.
func NewPage(out io.Writer) *terminal.Page { return terminal.NewPage(out) }

// Wrapped writes a sentence in lines that fit the terminal, if out is one.
func Wrapped(out io.Writer, format string, values ...any) error {
	_, err := fmt.Fprintln(out, terminal.Wrap(terminal.Line(fmt.Sprintf(format, values...)), ColumnsOf(out), 0))
	return err
}

// OrDash is a cell's text, or a dash where there is none.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
