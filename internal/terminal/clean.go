package terminal

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
)

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
