package translate

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendUnescaped appends the text of a JSON string that was scanned, given without its quotes.
func AppendUnescaped(dst, inside []byte) []byte {
	for {
		i := bytes.IndexByte(inside, '\\')
		if i < 0 {
			return append(dst, inside...)
		}
		dst = append(dst, inside[:i]...)
		for inside = inside[i:]; len(inside) > 1 && inside[0] == '\\'; inside = inside[i:] { // escapes come in rows
			if c := unescaped[inside[1]]; c != 0 {
				dst, i = append(dst, c), 2
				continue
			}
			if len(inside) < len(`\u0000`) {
				return dst // can't be: it was scanned
			}
			var r rune
			r, i = runeOf(inside)
			dst = utf8.AppendRune(dst, r)
		}
	}
}

// unescaped are the bytes that the escapes of two bytes stand for, by the second.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// runeOf returns the character of the escapes that p begins with, and their length. Half a surrogate pair is no character, for which another stands.
func runeOf(p []byte) (r rune, size int) {
	r = unit(p)
	if utf16.IsSurrogate(r) && len(p) >= 12 && p[6] == '\\' && p[7] == 'u' {
		return utf16.DecodeRune(r, unit(p[6:])), 12
	}
	return r, 6
}

// unit returns the value of the four digits of an escape.
func unit(p []byte) (r rune) {
	for _, c := range p[2:6] {
		switch {
		case c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}
