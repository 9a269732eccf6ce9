package harness

import (
	"regexp"
	"strconv"
	"strings"
)

// Screen is what a terminal shows: it carries out the sequences that move its cursor and erase, and ignores all others. It has no
// last line, so nothing scrolls away.
type Screen struct {
	columns  int
	lines    [][]rune
	row, col int
	wraps    bool // the last column was written, and the next character begins a line
}

// NewScreen returns an empty screen with a number of columns.
func NewScreen(columns int) *Screen { return &Screen{columns: columns, lines: [][]rune{nil}} }

var control = regexp.MustCompile(`^(?:\x1b\[([0-9;<=>?]*)[ -/]*([@-~])|\x1b[()][A-Z0-9]|\x1b.)`)

// Write shows a text. A sequence must not be cut off at its end.
func (s *Screen) Write(text string) {
	for text != "" {
		if found := control.FindStringSubmatch(text); found != nil {
			text = text[len(found[0]):]
			s.control(found[1], found[2])
			continue
		}
		r := []rune(text[:min(len(text), 4)])[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col, s.wraps = 0, false
		case '\n':
			s.down(1)
			s.wraps = false
		case '\b':
			s.col = max(0, s.col-1)
		case '\a':
		default:
			s.put(r)
		}
	}
}

// put shows a character of one column.
func (s *Screen) put(r rune) {
	if s.wraps {
		s.col, s.wraps = 0, false
		s.down(1)
	}
	line := s.lines[s.row]
	for len(line) <= s.col {
		line = append(line, ' ')
	}
	line[s.col] = r
	s.lines[s.row] = line
	if s.col == s.columns-1 {
		s.wraps = true
		return
	}
	s.col++
}

func (s *Screen) down(n int) {
	for s.row += n; len(s.lines) <= s.row; {
		s.lines = append(s.lines, nil)
	}
}

// control carries out a sequence with its parameters and its last letter.
func (s *Screen) control(parameters, letter string) {
	n, err := strconv.Atoi(parameters)
	if err != nil {
		n = 0
	}
	switch letter {
	case "A":
		s.row = max(0, s.row-max(1, n))
	case "B":
		s.down(max(1, n))
	case "C":
		s.col = min(s.columns-1, s.col+max(1, n))
	case "D":
		s.col = max(0, s.col-max(1, n))
	case "K":
		s.erase(n)
	case "J":
		s.erase(n)
		if n == 0 {
			s.lines = s.lines[:s.row+1]
		}
	default:
		return
	}
	s.wraps = false
}

// erase erases the line from the cursor on (0), up to it (1), or all of it (2).
func (s *Screen) erase(what int) {
	line := s.lines[s.row]
	switch what {
	case 0:
		s.lines[s.row] = line[:min(len(line), s.col)]
	case 1:
		for i := range min(len(line), s.col+1) {
			line[i] = ' '
		}
	case 2:
		s.lines[s.row] = nil
	}
}

// String returns the lines, without spaces at their ends.
func (s *Screen) String() string {
	var text strings.Builder
	for _, line := range s.lines {
		text.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(text.String(), "\n") + "\n"
}
