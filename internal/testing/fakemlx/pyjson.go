package fakemlx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// field is a member of an object whose order matters.
type field struct {
	name  string
	value any
}

// record is a JSON object in order.
type record []field

// dumps encodes a value as Python's json.dumps does: spaces after commas and colons, and ASCII only.
func dumps(value any) string {
	var b strings.Builder
	dump(&b, value)
	return b.String()
}

func dump(b *strings.Builder, value any) {
	switch v := value.(type) {
	case nil:
		b.WriteString("null")
	case string:
		dumpString(b, v)
	case int:
		b.WriteString(strconv.Itoa(v))
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	case record:
		b.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			dumpString(b, f.name)
			b.WriteString(": ")
			dump(b, f.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			dump(b, item)
		}
		b.WriteByte(']')
	default:
		panic(fmt.Sprintf("fakemlx: encoding a %T", value))
	}
}

func dumpString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= 0x20 && r < 0x80:
			b.WriteRune(r)
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
}

// syntaxError is Python's JSONDecodeError.
type syntaxError struct {
	problem string
	text    []byte
	at      int // bytes
}

func (e *syntaxError) Error() string {
	before := e.text[:min(e.at, len(e.text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("%s: line %d column %d (char %d)", e.problem, line, column, utf8.RuneCount(before))
}

// loads decodes JSON. Numbers are json.Number, so that 40 and 40.0 can be told apart, as they are in Python. Its errors are Python's for the usual
// mistakes.
func loads(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if rest := bytes.TrimLeft(text[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
			return nil, &syntaxError{"Extra data", text, len(text) - len(rest)}
		}
		return v, nil
	}
	at := len(text)
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) && !errors.Is(err, io.ErrUnexpectedEOF) {
		at = int(wrong.Offset) - 1
	}
	problem := "Expecting value"
	if before := bytes.TrimRight(text[:max(0, min(at, len(text)))], " \t\r\n"); len(before) > 0 {
		switch before[len(before)-1] {
		case '{':
			problem = "Expecting property name enclosed in double quotes"
		case '"', '}', ']':
			problem = "Expecting ',' delimiter"
		}
	}
	return nil, &syntaxError{problem, text, max(0, at)}
}

// hasLoneSurrogate reports whether JSON text has an escape that is half of a pair. Python takes it, and can't encode it.
func hasLoneSurrogate(text string) bool {
	for at := 0; at+1 < len(text); at++ {
		if text[at] != '\\' {
			continue
		}
		r := escaped(text[at:])
		switch {
		case r < 0:
			at++
		case !utf16.IsSurrogate(r):
			at += 5
		case len(text) < at+12 || utf16.DecodeRune(r, escaped(text[at+6:])) == utf8.RuneError:
			return true
		default:
			at += 11
		}
	}
	return false
}

// escaped is the character that a text begins with as an escape of six bytes, or -1.
func escaped(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
