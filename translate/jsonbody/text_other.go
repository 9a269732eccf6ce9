//go:build !amd64

package jsonbody

// skip skips a part of a string in blocks, where there is assembly for the processor.
func (s *Scanner) skip(i int) (_ int, bad bool) { return i, false }
