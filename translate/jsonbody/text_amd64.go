package jsonbody

import (
	"unicode/utf8"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C ../../tools/textasm . -out ../../translate/jsonbody/text_amd64.s

// canSkip reports whether the processor has the instructions of skipText.
var canSkip = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

// skipBlock is the number of bytes that skipText looks at together. It reads up to skipBefore bytes before the first of them.
const (
	skipBlock  = 64
	skipBefore = 3
)

// maxSkipped bounds what one call of skipText reads, since Go can't stop a goroutine in assembly.
const maxSkipped = 256 << 10

// skipText returns the position of the first byte at or after i that is the closing quote, a control character, or the backslash of
// anything but a correct escape of two bytes. If there is none, or if it is too near to the end of the data, it returns the position from which it
// hasn't read, which may be within a character. i is neither within a character nor an escape, and at least skipBefore. If check is set, bad
// reports that the text up to that position isn't UTF-8.
//
//go:noescape
func skipText(data []byte, i int, check bool) (to int, bad bool)

// skip skips the part of a string from i that needs no other look, in blocks. It does nothing where that isn't possible. bad reports that the text isn't UTF-8.
func (s *Scanner) skip(i int) (_ int, bad bool) {
	for canSkip && i >= skipBefore && len(s.Data)-i >= skipBlock {
		from, part := i, s.Data[:min(len(s.Data), i+maxSkipped)]
		i, bad = skipText(part, from, !s.Lenient)
		if bad || i < len(part)-skipBlock {
			return i, bad
		}
		i = max(from, startOfCharacter(part, i)) // what is before was read
		if len(part) == len(s.Data) {
			break
		}
	}
	return i, false
}

// startOfCharacter returns where the character with the byte before i begins, and i if that is ASCII.
func startOfCharacter(data []byte, i int) int {
	for n := 0; n < utf8.UTFMax && data[i-1] >= utf8.RuneSelf; n++ {
		i--
		if utf8.RuneStart(data[i]) {
			break
		}
	}
	return i
}
