package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	printEvery  = 5 * time.Second        // elsewhere, where lines pile up
)

// Progress shows progress: on a terminal one line that is redrawn, and cut to its width; elsewhere a line now and then. It is for
// one goroutine.
type Progress struct {
	out        io.Writer
	isTerminal bool
	columns    func() int
	now        func() time.Time
	doing      string
	shown      time.Time
	width      int // of the line on the terminal
}

// NewProgress returns the progress on a stream. Nothing is shown yet.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, isTerminal: Is(out), columns: func() int { return Columns(out) }, now: time.Now}
}

// Update shows a text about an activity, unless one about the same activity was shown just now. Format and values are those of [Printf].
func (p *Progress) Update(doing, format string, values ...any) {
	every := printEvery
	if p.isTerminal {
		every = redrawEvery
	}
	now := p.now()
	if doing == p.doing && now.Sub(p.shown) < every {
		return
	}
	p.doing, p.shown = doing, now
	text := fmt.Sprintf(format, lines(values)...)
	if !p.isTerminal {
		_, _ = fmt.Fprintln(p.out, text)
		return
	}
	text = Cut(text, max(1, p.columns()-1)) // a character in the last column may begin another line
	width := Width(text)
	_, _ = fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-width)))
	p.width = width
}

// End clears the line, so that what follows begins on a clean one.
func (p *Progress) End() {
	if p.isTerminal && p.width > 0 {
		_, _ = fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", min(p.width, max(1, p.columns()-1))))
		p.width = 0
	}
}
