// Package terminal writes for people: tables and lines that fit the terminal, progress, and colours only where they are wanted.
// A stream that isn't a terminal gets everything in full and without colours. The package has no goroutines.
package terminal

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// Escape sequences of terminals. Write them only if [HasColors] is true.
const (
	Dim   = "\x1b[2m"
	Plain = "\x1b[0m"
)

// usualColumns is the width of a terminal that doesn't tell it.
const usualColumns = 80

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// Columns returns the width of a terminal in characters, or 0 for another stream. What writes to a terminal in the end may say so
// with a method Columns of its own.
func Columns(stream any) int {
	if of, ok := stream.(interface{ Columns() int }); ok {
		return of.Columns()
	}
	if !Is(stream) {
		return 0
	}
	if width, _, err := term.GetSize(int(stream.(*os.File).Fd())); err == nil && width > 0 {
		return width
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return usualColumns
}

// HasColors reports whether a stream is a terminal whose user wants colours: NO_COLOR isn't set, and the terminal isn't dumb.
func HasColors(stream any) bool {
	return Is(stream) && os.Getenv("NO_COLOR") == "" && !IsDumb()
}

// IsDumb reports whether the terminal does nothing but show text, as those of editors and of some logs: lines can't be edited there.
func IsDumb() bool {
	kind := os.Getenv("TERM")
	return kind == "dumb" || kind == "" && runtime.GOOS != "windows"
}

var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Width returns how many columns a text takes.
func Width(text string) int { return runewidth.StringWidth(colors.ReplaceAllString(text, "")) }

// Cut shortens a line to a number of columns, with … at its end. A line that is cut keeps only the colour that it begins with.
func Cut(line string, columns int) string {
	if Width(line) <= columns {
		return line
	}
	begin := ""
	if at := colors.FindStringIndex(line); at != nil && at[0] == 0 {
		begin = line[:at[1]]
	}
	short := runewidth.Truncate(colors.ReplaceAllString(line, ""), columns, "…")
	if begin != "" {
		short = begin + short + Plain
	}
	return short
}

const leastRoom = 20

// Wrap breaks a text at its spaces into lines that fit a terminal with a number of columns. It begins at the column indent, and so do
// its other lines. It is one line if columns is 0, or hardly any are left.
func Wrap(text string, columns, indent int) string {
	room := columns - indent - 1 // a character in the last column may begin another line
	if room < leastRoom {
		return text
	}
	var lines strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch n := Width(word); {
		case i == 0:
			width = n
		case width+1+n > room:
			lines.WriteString("\n" + strings.Repeat(" ", indent))
			width = n
		default:
			lines.WriteByte(' ')
			width += 1 + n
		}
		lines.WriteString(word)
	}
	return lines.String()
}

// Page collects what a command prints, so that it is written at once and an error of writing is seen. Tables on a page are as wide
// as the stream.
type Page struct {
	strings.Builder
	out io.Writer
}

// NewPage returns an empty page for a stream.
func NewPage(out io.Writer) *Page { return &Page{out: out} }

// Columns returns the width of the stream, as [Columns] does.
func (p *Page) Columns() int { return Columns(p.out) }

// Flush writes the page to its stream, and empties it.
func (p *Page) Flush() error {
	_, err := io.WriteString(p.out, Text(p.String()))
	p.Reset()
	return err
}

const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	printEvery  = 5 * time.Second        // elsewhere, where lines pile up
)

// Progress shows progress: on a terminal one line that is redrawn, and cut to its width; elsewhere a line now and then. It is for
// one goroutine.
type Progress struct {
	out        io.Writer
	isTerminal bool
	columns    func() int
	now        func() time.Time
	doing      string
	shown      time.Time
	width      int // of the line on the terminal
}

// NewProgress returns the progress on a stream. Nothing is shown yet.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, isTerminal: Is(out), columns: func() int { return Columns(out) }, now: time.Now}
}

// Update shows a text about an activity, unless one about the same activity was shown just now. Format and values are those of [Printf].
func (p *Progress) Update(doing, format string, values ...any) {
	every := printEvery
	if p.isTerminal {
		every = redrawEvery
	}
	now := p.now()
	if doing == p.doing && now.Sub(p.shown) < every {
		return
	}
	p.doing, p.shown = doing, now
	text := fmt.Sprintf(format, lines(values)...)
	if !p.isTerminal {
		_, _ = fmt.Fprintln(p.out, text)
		return
	}
	text = Cut(text, max(1, p.columns()-1)) // a character in the last column may begin another line
	width := Width(text)
	_, _ = fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-width)))
	p.width = width
}

// End clears the line, so that what follows begins on a clean one.
func (p *Progress) End() {
	if p.isTerminal && p.width > 0 {
		_, _ = fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", min(p.width, max(1, p.columns()-1))))
		p.width = 0
	}
}

// Names of models, texts of servers and of files may come from anywhere. With control characters they could change what a terminal shows or
// does, with marks for the direction of text show one name as another, and with a newline add lines of their own. What a command prints
// that it hasn't made itself goes through a function of this file, or is a cell of a [Table].

// Line returns a text with � in the place of each such character, on one line. A tab becomes a space.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\t':
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

// Text returns a text of several lines without such characters, but with its newlines, tabs and what joins characters.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			return -1
		}
		return r
	}, text)
}

// Printf is fmt.Fprintf with each text and error among the values as a [Line]. The format is the command's own.
func Printf(out io.Writer, format string, values ...any) (int, error) {
	return fmt.Fprintf(out, format, lines(values)...)
}

// Println is fmt.Fprintln, likewise.
func Println(out io.Writer, values ...any) (int, error) { return fmt.Fprintln(out, lines(values)...) }

func lines(values []any) []any {
	clean := make([]any, len(values))
	for i, value := range values {
		clean[i] = value
		if err, isError := value.(error); isError {
			clean[i] = Line(err.Error())
		} else if of := reflect.ValueOf(value); of.Kind() == reflect.String {
			clean[i] = Line(of.String())
		}
	}
	return clean
}

// Row adds a row to the table, whose cells may contain anything.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		if i > 0 {
			t.text.WriteByte('\t')
		}
		t.text.WriteString(Line(cell))
	}
	t.text.WriteByte('\n')
}

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
