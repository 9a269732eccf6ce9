package command

import (
	"io"
	"text/tabwriter"
)

// newTable writes a table for people: cells end with a tab, rows with a newline. Flush writes it out, and returns the first
// error of writing.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// orDash is a cell's text, or a dash where there is none.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
