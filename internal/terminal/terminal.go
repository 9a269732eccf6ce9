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
	"strconv"
	"strings"
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
