package jsonbody

import "bytes"

// IsCanonical reports whether a JSON string in the body is as [AppendString] writes its text. It is also false for a string with
// an escape of six bytes that is written so.
func (b *Body) IsCanonical(value []byte) bool {
	return (!b.hasLong || hasOnlyShortEscapes(value)) && !hasEscapedSlash(value) && !hasLineSeparator(value)
}

// hasOnlyShortEscapes reports whether all escapes have two bytes.
func hasOnlyShortEscapes(value []byte) bool {
	s := Scanner{Data: value, Lenient: true}
	for i := 1; i < len(value)-1; {
		if i, _ = s.skip(i); value[i] == '\\' {
			if value[i+1] == 'u' {
				return false
			}
			i++
		}
		i = nextSpecial(value[:min(i+1+shortText, len(value))], i+1) // most is skipped in blocks where there are any
	}
	return true
}

func hasEscapedSlash(value []byte) bool {
	for i := 1; ; {
		next := bytes.IndexByte(value[i:], '/')
		if next < 0 {
			return false
		}
		i += next
		before := i
		for value[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 1 { // otherwise these are backslashes themselves
			return true
		}
		for value[i] == '/' { // they come in rows, and a quote follows
			i++
		}
	}
}

// hasLineSeparator reports whether there is one of the two characters beyond ASCII that are escaped, U+2028 and U+2029.
func hasLineSeparator(value []byte) bool {
	const first = 0xe2
	for {
		i := bytes.IndexByte(value, first)
		if i < 0 {
			return false
		}
		if value[i+1] == 0x80 && value[i+2]|1 == 0xa9 {
			return true
		}
		value = value[i+3:]
	}
}
