package schema

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// llama-server makes a grammar of a pattern by itself. It takes a pattern that isn't anchored, or has an escape that it doesn't know, for
// any string, and it matches JSON as it is written: its "." takes a quote, after which the string ends. So a pattern is rewritten, by
// Go's parser, to one of what is between the quotes, with only the syntax that the engine knows.

// maxRanges is the maximum number of ranges in one character class of a pattern for the engine.
const maxRanges = 64

// anyCharacter matches a character of a JSON string.
const anyCharacter = `([^\x00-\x1F\x22\x5C\x7F]|\\["\\nrt])`

// enginePattern returns a pattern for the engine that matches no more than the given one; ok is false if there is none.
func enginePattern(pattern string) (engine string, ok bool) {
	re, err := syntax.Parse(fromECMA(pattern), syntax.Perl)
	if err != nil {
		return "", false
	}
	c := patternWriter{ok: true}
	text := c.anchored(re)
	return "^" + text + "$", c.ok
}

// fromECMA returns a regular expression in Go's syntax. What JavaScript has and Go hasn't stays as it is, and isn't parsed then.
func fromECMA(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, `\u`) && len(rest) >= 6 && strings.Trim(rest[2:6], "0123456789abcdefABCDEF") == "":
			out.WriteString(`\x{` + rest[2:6] + `}`)
			i += 5
		case strings.HasPrefix(rest, `\u{`):
			out.WriteString(`\x{`)
			i += 2
		case strings.HasPrefix(rest, `[^]`):
			out.WriteString(`(?s:.)`)
			i += 2
		case rest[0] == '\\' && len(rest) > 1:
			out.WriteString(rest[:2])
			i++
		default:
			out.WriteByte(rest[0])
		}
	}
	return out.String()
}

// patternWriter writes a parsed expression in the engine's syntax.
type patternWriter struct{ ok bool }

// anchored returns what matches the whole text where the expression matches a part of it.
func (c *patternWriter) anchored(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpCapture:
		return c.anchored(re.Sub[0])
	case syntax.OpAlternate:
		return joined(re.Sub, c.anchored)
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	before, after := anyCharacter+"*", anyCharacter+"*"
	for len(parts) > 0 && parts[0].Op == syntax.OpBeginText {
		parts, before = parts[1:], ""
	}
	for n := len(parts); n > 0 && parts[n-1].Op == syntax.OpEndText; n-- {
		parts, after = parts[:n-1], ""
	}
	return before + c.all(parts) + after
}

// joined returns alternatives as a function writes them. Some may be empty.
func joined(alternatives []*syntax.Regexp, write func(*syntax.Regexp) string) string {
	var some []string
	for _, one := range alternatives {
		if text := write(one); text != "" {
			some = append(some, text)
		}
	}
	switch {
	case len(some) == 0:
		return ""
	case len(some) < len(alternatives):
		return "(" + strings.Join(some, "|") + ")?"
	default:
		return "(" + strings.Join(some, "|") + ")"
	}
}

func (c *patternWriter) all(parts []*syntax.Regexp) string {
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(c.part(part))
	}
	return text.String()
}

func (c *patternWriter) part(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return ""
	case syntax.OpLiteral:
		var text strings.Builder
		for _, r := range re.Rune {
			text.WriteString(c.letter(r, re.Flags&syntax.FoldCase != 0))
		}
		return text.String()
	case syntax.OpCharClass:
		return c.class(re.Rune)
	case syntax.OpAnyChar:
		return c.class([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return c.class([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpCapture:
		return c.part(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		inner := c.part(re.Sub[0])
		if inner == "" {
			return ""
		}
		isOne := re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL || re.Sub[0].Op == syntax.OpCharClass
		if !isOne || inner[0] == '\\' {
			inner = "(" + inner + ")"
		}
		switch {
		case re.Op == syntax.OpStar:
			return inner + "*"
		case re.Op == syntax.OpPlus:
			return inner + "+"
		case re.Op == syntax.OpQuest:
			return inner + "?"
		case re.Max < 0:
			return inner + fmt.Sprintf("{%d,}", re.Min)
		case re.Max == re.Min:
			return inner + fmt.Sprintf("{%d}", re.Min)
		default:
			return inner + fmt.Sprintf("{%d,%d}", re.Min, re.Max)
		}
	case syntax.OpConcat:
		return c.all(re.Sub)
	case syntax.OpAlternate:
		return joined(re.Sub, c.part)
	default: // an anchor in the middle, a boundary of words, what matches nothing
		c.ok = false
		return ""
	}
}

// letter returns a character, or all that are the same without regard to case.
func (c *patternWriter) letter(r rune, anyCase bool) string {
	if !anyCase || unicode.SimpleFold(r) == r {
		return literal(r)
	}
	var all []rune
	for f := unicode.SimpleFold(r); ; f = unicode.SimpleFold(f) {
		all = append(all, f, f)
		if f == r {
			return c.class(all)
		}
	}
}

// literal returns a character as it is written in JSON, for the engine.
func literal(r rune) string {
	switch {
	case r == '"':
		return `\\"`
	case r == '\\':
		return `\\\\`
	case r == '\n':
		return `\\n`
	case r == '\r':
		return `\\r`
	case r == '\t':
		return `\\t`
	case r < 0x20, r == 0x7f:
		return fmt.Sprintf(`\\u%04X`, r)
	case strings.ContainsRune("^$.[]()|{}*+?", r):
		return `\` + string(r)
	case r > utf8.RuneSelf:
		return "[" + classRune(r) + "]" // the engine repeats only the last byte of others
	default:
		return string(r)
	}
}

// escapes are the characters that are written with a backslash in JSON, and what follows it.
var escapes = map[rune]string{'"': `"`, '\\': `\\`, '\n': "n", '\r': "r", '\t': "t"}

// class returns a character class: those characters that stand for themselves, or else an escape. ranges has the ends of each range.
func (c *patternWriter) class(ranges []rune) string {
	var plain []rune
	var shortened strings.Builder
	for i := 0; i+1 < len(ranges); i += 2 {
		for _, r := range []rune{'"', '\\', '\n', '\r', '\t'} {
			if ranges[i] <= r && r <= ranges[i+1] {
				shortened.WriteString(escapes[r])
			}
		}
		for _, asIs := range [][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7e}, {0x80, unicode.MaxRune}} { // in JSON
			if low, high := max(ranges[i], asIs[0]), min(ranges[i+1], asIs[1]); low <= high {
				plain = append(plain, low, high)
			}
		}
	}
	escaped := shortened.String()
	if len(plain) > 2*maxRanges || len(plain) == 0 && escaped == "" {
		c.ok = false
		return ""
	}
	text := ""
	if n := len(plain); n > 0 && plain[n-1] == unicode.MaxRune {
		others, next := []rune{}, rune(0) // the ranges between these
		for i := 0; i < len(plain); i += 2 {
			if plain[i] > next {
				others = append(others, next, plain[i]-1)
			}
			next = plain[i+1] + 1
		}
		text, plain = "^", others
	}
	for i := 0; i < len(plain); i += 2 {
		text += classRune(plain[i])
		if plain[i+1] > plain[i] {
			text += "-" + classRune(plain[i+1])
		}
	}
	switch {
	case escaped == "":
		return "[" + text + "]"
	case text == "":
		return `\\[` + escaped + "]"
	default:
		return "([" + text + `]|\\[` + escaped + "])"
	}
}

func classRune(r rune) string {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_ .,:;/@+*!#%&='<>~", r):
		return string(r)
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	default:
		return string(r)
	}
}
