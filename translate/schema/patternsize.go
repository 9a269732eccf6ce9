package schema

import (
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the regular expressions in a schema. For each repetition of an expression that matches the empty text, an engine
// checks tokens at every place where it could go on. 300 of them take minutes.
const (
	maxPattern      = 2048 // bytes
	maxPatternSize  = 2000 // characters, including bounded repetitions
	maxEmptyRepeats = 32   // consecutive parts that match the empty text
	maxPatternDepth = 32   // nesting of groups
)

// costOf returns what is wrong with a regular expression that is too costly, to follow its name; empty if it is fine.
func costOf(text string) string {
	p := pattern{text: text}
	switch size := p.alternatives(0); {
	case len(text) > maxPattern:
		return "has " + strconv.Itoa(len(text)) + " bytes; at most " + strconv.Itoa(maxPattern) + " are allowed"
	case p.crossed:
		return "repeats at least more often than at most: in {n,m}, m must not be less than n"
	case p.deep:
		return "has more than " + strconv.Itoa(maxPatternDepth) + " groups within each other"
	case size.characters > maxPatternSize:
		return "repeats to more than " + strconv.Itoa(maxPatternSize) + " characters; use smaller numbers, or * or +"
	case size.most > maxEmptyRepeats:
		return "repeats what may be empty more than " + strconv.Itoa(maxEmptyRepeats) + " times; use * instead"
	default:
		return ""
	}
}

// pattern parses a regular expression, in any syntax, as far as its size requires.
type pattern struct {
	text string
	pos  int
	deep bool

	crossed bool // a repetition has a maximum below its minimum; llama-server repeats until it has no memory then
}

// patternSize is the size of a part of a regular expression. A run is a number of consecutive parts that match the empty
// text.
type patternSize struct {
	characters       int  // of the longest match, counting * and + once
	head, tail, most int  // the runs at its start and end, and the longest
	mayBeEmpty       bool // matches the empty text; the three runs are equal
}

// tooMany stands for all numbers above the limits.
const tooMany = 1 << 20

func (a patternSize) then(b patternSize) patternSize {
	both := patternSize{
		characters: min(a.characters+b.characters, tooMany), head: a.head, tail: b.tail,
		most: min(max(a.most, b.most, a.tail+b.head), tooMany), mayBeEmpty: a.mayBeEmpty && b.mayBeEmpty,
	}
	if a.mayBeEmpty {
		both.head = min(a.head+b.head, tooMany)
	}
	if b.mayBeEmpty {
		both.tail = min(a.tail+b.tail, tooMany)
	}
	return both
}

func (a patternSize) or(b patternSize) patternSize {
	return patternSize{
		min(a.characters+b.characters, tooMany), min(a.head+b.head, tooMany), min(a.tail+b.tail, tooMany), min(a.most+b.most, tooMany),
		a.mayBeEmpty || b.mayBeEmpty,
	}
}

func (a patternSize) times(least, most int) patternSize {
	a.characters = min(a.characters*max(1, most), tooMany)
	switch {
	case a.mayBeEmpty:
		run := min(max(1, a.most)*max(1, most), tooMany)
		a.head, a.tail, a.most = run, run, run
	case most > 1:
		a.most = min(max(a.most, a.tail+a.head), tooMany)
	}
	if least == 0 && !a.mayBeEmpty {
		run := max(1, a.most)
		a.head, a.tail, a.most, a.mayBeEmpty = run, run, run, true
	}
	return a
}

func (p *pattern) alternatives(depth int) patternSize {
	if p.deep = p.deep || depth > maxPatternDepth; p.deep {
		return patternSize{}
	}
	var all patternSize
	one := patternSize{mayBeEmpty: true}
	for p.pos < len(p.text) && (depth == 0 || p.text[p.pos] != ')') && !p.deep {
		if p.text[p.pos] == '|' {
			p.pos++
			all, one = all.or(one), patternSize{mayBeEmpty: true}
			continue
		}
		part := p.piece(depth)
		for p.pos < len(p.text) {
			least, most, ok := p.quantifier()
			if !ok {
				break
			}
			part = part.times(least, most)
		}
		one = one.then(part)
	}
	if all = all.or(one); all.mayBeEmpty {
		all.most = max(1, all.most)
		all.head, all.tail = all.most, all.most
	}
	return all
}

// piece parses a character, a character class or a group.
func (p *pattern) piece(depth int) patternSize {
	switch c := p.text[p.pos]; c {
	case '(':
		p.pos++
		size := p.alternatives(depth + 1)
		p.pos++ // the closing parenthesis
		return size
	case '[':
		for p.pos++; p.pos < len(p.text) && p.text[p.pos] != ']'; p.pos++ {
			if p.text[p.pos] == '\\' {
				p.pos++
			}
		}
		p.pos++
	case '\\':
		p.pos += 2
	case '^', '$':
		p.pos++
		return patternSize{mayBeEmpty: true} // an anchor is no choice, so no part of a run
	default:
		p.pos++
	}
	return patternSize{characters: 1}
}

// quantifier parses *, +, ?, {n}, {n,} or {n,m}. Without an upper bound, most is 1: engines compile it to a rule that refers
// to itself.
func (p *pattern) quantifier() (least, most int, ok bool) {
	switch p.text[p.pos] {
	case '*':
		p.pos++
		return 0, 1, true
	case '+':
		p.pos++
		return 1, 1, true
	case '?':
		p.pos++
		return 0, 1, true
	case '{':
	default:
		return 0, 0, false
	}
	inside, _, closed := strings.Cut(p.text[p.pos+1:], "}")
	from, to, isRange := strings.Cut(inside, ",")
	least, okFrom := small(from)
	most, okTo := small(to)
	if !closed || !okFrom && !okTo {
		return 0, 0, false // a literal brace
	}
	p.pos += len(inside) + 2
	if !isRange || !okTo {
		most = max(1, least)
	}
	p.crossed = p.crossed || least > most
	return least, most, true
}

// small parses a decimal number, up to tooMany.
func small(digits string) (n int, ok bool) {
	for _, c := range []byte(digits) {
		if !jsonbody.IsDigit(c) {
			return 0, false
		}
		n = min(n*10+int(c-'0'), tooMany)
	}
	return n, digits != ""
}
