package schema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Limits of the regular expressions in a schema. For each repetition of an expression that matches the empty text, an engine
// checks tokens at every place where it could go on. 300 of them take minutes.
const (
	maxPattern      = 2048 // bytes
	maxPatternSize  = 2000 // characters, including bounded repetitions
	maxEmptyRepeats = 32   // consecutive parts that match the empty text
	maxPatternDepth = 32   // nesting of groups
)

// costOf returns what is wrong with a regular expression that is too costly, to follow its name; empty if it is fine. One that Go's
// parser doesn't know costs no engine anything: see [enginePattern].
func costOf(text string) string {
	if len(text) > maxPattern {
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxPattern)
	}
	const tooLarge = "repeats to more than %d characters; use smaller numbers, or * or +"
	re, err := syntax.Parse(fromECMA(text), syntax.Perl)
	if bad, ok := errors.AsType[*syntax.Error](err); ok && bad.Code == syntax.ErrInvalidRepeatSize {
		from, to, isRange := strings.Cut(strings.Trim(bad.Expr, "{}"), ",")
		least, tooMany := strconv.Atoi(from)
		if most, _ := strconv.Atoi(to); isRange && to != "" && least > most {
			return "repeats at least more often than at most: in {n,m}, m must not be less than n"
		} else if tooMany != nil || max(least, most) > maxPatternSize {
			return fmt.Sprintf(tooLarge, maxPatternSize)
		}
	}
	if err != nil {
		return ""
	}
	switch size := sizeOf(re, 0); {
	case size.depth > maxPatternDepth:
		return fmt.Sprintf("has more than %d groups within each other", maxPatternDepth)
	case size.characters > maxPatternSize:
		return fmt.Sprintf(tooLarge, maxPatternSize)
	case size.most > maxEmptyRepeats:
		return fmt.Sprintf("repeats what may be empty more than %d times; use * instead", maxEmptyRepeats)
	default:
		return ""
	}
}

// patternSize is the size of a part of a regular expression. A run is a number of consecutive parts that match the empty text.
type patternSize struct {
	characters       int  // of the longest match, counting * and + once
	head, tail, most int  // the runs at its start and end, and the longest
	mayBeEmpty       bool // matches the empty text; the three runs are equal
	depth            int  // of groups
}

// tooMany stands for all numbers above the limits.
const tooMany = 1 << 20

func sizeOf(re *syntax.Regexp, depth int) patternSize {
	size := patternSize{depth: depth}
	switch re.Op {
	case syntax.OpLiteral:
		size.characters = len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		size.characters = 1
	case syntax.OpCapture:
		return sizeOf(re.Sub[0], depth+1)
	case syntax.OpConcat:
		size.mayBeEmpty = true
		for _, sub := range re.Sub {
			size = size.then(sizeOf(sub, depth))
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			size = size.or(sizeOf(sub, depth+1))
		}
		if size.mayBeEmpty {
			size.most = max(1, size.most)
			size.head, size.tail = size.most, size.most
		}
	case syntax.OpStar, syntax.OpQuest:
		return sizeOf(re.Sub[0], depth).times(0, 1)
	case syntax.OpPlus: // without an upper bound, engines compile a repetition to a rule that refers to itself
		return sizeOf(re.Sub[0], depth).times(1, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = max(1, re.Min)
		}
		return sizeOf(re.Sub[0], depth).times(re.Min, most)
	default: // an anchor is no choice, so no part of a run
		size.mayBeEmpty = true
	}
	return size
}

func (a patternSize) then(b patternSize) patternSize {
	both := patternSize{
		characters: min(a.characters+b.characters, tooMany), head: a.head, tail: b.tail,
		most: min(max(a.most, b.most, a.tail+b.head), tooMany), mayBeEmpty: a.mayBeEmpty && b.mayBeEmpty,
		depth: max(a.depth, b.depth),
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
		a.mayBeEmpty || b.mayBeEmpty, max(a.depth, b.depth),
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

// Limits of the JSON schemas of one request. An engine compiles them to a grammar and checks each token against it. Measured:
// schemas within the limits compile in well under a second.
const (
	maxBytes   = 512 << 10
	maxFields  = 512    // properties of one object
	maxValues  = 20_000 // JSON values
	maxMembers = 1024   // members of one enum
	maxWork    = 60_000 // see Work
)

// Work adds up the cost of compiling the schemas of a request: one for each subschema each time a reference leads to it, and for an
// object half the square of the number of its optional properties, since any of them may be left out.
type Work struct{ sum int }

func (w *Work) take(cost int) bool {
	if w.sum+cost > maxWork {
		return false
	}
	w.sum += cost
	return true
}

type coster struct {
	*document
	cost map[*node]int // of the targets of references
	open map[*node]bool
}

func (c *coster) of(n *node) int {
	if !n.isObject() {
		return 1
	}
	sum := 1
	for i, name := range n.names {
		value := n.values[i]
		switch name {
		case "properties", "patternProperties", "dependentSchemas":
			sum += c.properties(n, value)
		case "$ref":
			sum += c.reference(value.text)
		case "enum":
			sum += len(value.values)
			if len(value.values) > maxMembers {
				sum = 2 * maxWork
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, inner := range value.values {
				if sum = min(sum+c.of(inner), 2*maxWork); sum == 2*maxWork {
					return sum
				}
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			sum += c.of(value)
		}
		if sum = min(sum, 2*maxWork); sum == 2*maxWork {
			break
		}
	}
	return sum
}

func (c *coster) properties(n, properties *node) int {
	if len(properties.names) > maxFields {
		return 2 * maxWork
	}
	sum, optional := 0, 0
	for i, name := range properties.names {
		sum = min(sum+c.of(properties.values[i]), 2*maxWork)
		if !isRequired(n, name) {
			optional++
		}
	}
	return min(sum+optional*optional/2, 2*maxWork)
}

func isRequired(n *node, name string) bool {
	required := n.get("required")
	return required != nil && slices.ContainsFunc(required.values, func(r *node) bool { return r.text == name })
}

// reference returns the cost of the target of a reference. A recursive reference adds nothing, since an engine compiles its target once.
func (c *coster) reference(ref string) int {
	target := c.target(ref)
	switch n, known := c.cost[target]; {
	case target == nil, c.open[target]:
		return 1
	case known:
		return n
	}
	c.open[target] = true
	n := c.of(target)
	delete(c.open, target)
	c.cost[target] = n
	return n
}
