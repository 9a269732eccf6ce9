package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Table aligns cells in columns: cells end with a tab, rows with a newline. A line without a tab stands for itself, and begins
// another table. On a terminal, the widest columns are cut until each row fits, unless little would be left of them: then nothing
// is cut, and rows take several lines. What may contain anything is added by [Table.Row]; in what is written, tabs and newlines count.
type Table struct {
	out     io.Writer
	columns int // 0: no limit
	first   []int
	text    strings.Builder
}

const gap = 2

const leastWidth = 8

// NewTable returns an empty table for a stream. Nothing is written before [Table.Flush].
func NewTable(out io.Writer) *Table { return &Table{out: out, columns: Columns(out)} }

// WriteTable writes a table with a head, whose cells are separated by tabs, and a row for each value.
func WriteTable[T any](out io.Writer, head string, values []T, row func(*T) []string) error {
	table := NewTable(out)
	fmt.Fprintln(table, head)
	for i := range values {
		table.Row(row(&values[i])...)
	}
	return table.Flush()
}

// CutFirst names columns, counted from 0, that are cut before any other is, the first of them first.
func (t *Table) CutFirst(columns ...int) { t.first = columns }

// Write adds cells. It returns no error.
func (t *Table) Write(cells []byte) (int, error) { return t.text.Write(cells) }

// Flush writes the table to the stream, and empties it.
func (t *Table) Flush() error {
	var page strings.Builder
	var rows [][]string
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		t.align(&page, rows)
		rows = nil
		page.WriteString(Text(line) + "\n")
	}
	t.align(&page, rows)
	t.text.Reset()
	_, err := io.WriteString(t.out, page.String())
	return err
}

// align writes rows whose cells stand below each other.
func (t *Table) align(page *strings.Builder, rows [][]string) {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			cells[i] = Line(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cells[i]))
		}
	}
	if t.columns > 0 && len(rows) > 0 {
		widths = narrowed(widths, t.columns-gap*(len(widths)-1), t.first)
	}
	for _, cells := range rows {
		var row strings.Builder
		for i, cell := range cells {
			cell = cut(cell, widths[i])
			row.WriteString(cell + strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)+gap))
		}
		page.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
}

// cut shortens a cell. The variant of a model, behind an @, stays if there is room for it and some of the name.
func cut(cell string, width int) string {
	variant := max(0, strings.LastIndexByte(cell, '@'))
	room := width - runewidth.StringWidth(cell[variant:])
	if variant == 0 || room < leastWidth || runewidth.StringWidth(cell) <= width {
		return runewidth.Truncate(cell, width, "…")
	}
	return runewidth.Truncate(cell[:variant], room, "…") + cell[variant:]
}

// narrowed returns the widths, reduced until their sum is no more than the room: those of the columns to cut first, then the
// largest ones. They are the same widths if that would leave too little.
func narrowed(widths []int, room int, first []int) []int {
	less := slices.Clone(widths)
	sum := 0
	for _, w := range less {
		sum += w
	}
	for _, i := range first {
		if i < len(less) && sum > room {
			most := max(0, less[i]-leastWidth)
			cut := min(most, sum-room)
			less[i] -= cut
			sum -= cut
		}
	}
	for ; sum > room; sum-- {
		widest := 0
		for i, w := range less {
			if w >= less[widest] { // the last of them: names come first
				widest = i
			}
		}
		if less[widest] <= leastWidth {
			return widths
		}
		less[widest]--
	}
	return less
}
