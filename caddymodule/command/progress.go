package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	printEvery  = 5 * time.Second        // elsewhere, where lines pile up
)

// progressLine shows progress: on a terminal one line that is redrawn, elsewhere a line now and then.
type progressLine struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	doing    string
	shown    time.Time
	width    int
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, terminal: isTerminal(out), now: time.Now}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// columnsOf returns the width of a terminal in characters, or 0 for another stream.
func columnsOf(stream any) int {
	file, isFile := stream.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func (l *progressLine) show(p runtimes.Progress) {
	text := p.Doing
	switch {
	case p.Total > 0:
		text += fmt.Sprintf("  %.1f of %.1f MB, %.0f%%", float64(p.Done)/1e6, float64(p.Total)/1e6, p.Percent)
	case p.Done > 0:
		text += fmt.Sprintf("  %.1f MB", float64(p.Done)/1e6)
	case p.Percent > 0:
		text += fmt.Sprintf("  %.0f%%", p.Percent)
	}
	l.update(p.Doing, text)
}

// update shows a text about an activity, unless one about the same activity was shown just now.
func (l *progressLine) update(doing, text string) {
	every := printEvery
	if l.terminal {
		every = redrawEvery
	}
	now := l.now()
	if doing == l.doing && now.Sub(l.shown) < every {
		return
	}
	l.doing, l.shown = doing, now
	if !l.terminal {
		_, _ = fmt.Fprintln(l.out, text)
		return
	}
	_, _ = fmt.Fprintf(l.out, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-len(text))))
	l.width = len(text)
}

// end clears the line, so that what follows starts on a clean one.
func (l *progressLine) end() {
	if l.terminal && l.width > 0 {
		_, _ = fmt.Fprintf(l.out, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}
