package kit

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// ProgressLine shows the progress of what a command waits for.
type ProgressLine struct {
	line     *terminal.Progress
	Terminal bool
}

func NewProgressLine(out io.Writer) *ProgressLine {
	return &ProgressLine{terminal.NewProgress(out), IsTerminal(out)}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool { return terminal.Is(stream) }

// ColumnsOf returns the width of a terminal in characters, or 0 for another stream.
func ColumnsOf(stream any) int { return terminal.Columns(stream) }

func (l *ProgressLine) Show(p runtimes.Progress) {
	text := p.Doing
	done := humanize.Bytes(uint64(max(0, p.Done)))
	switch {
	case p.Total > 0:
		text += fmt.Sprintf("  %s of %s, %.0f%%", done, humanize.Bytes(uint64(p.Total)), p.Percent)
	case p.Done > 0:
		text += "  " + done
	case p.Percent > 0:
		text += fmt.Sprintf("  %.0f%%", p.Percent)
	}
	l.Update(p.Doing, text)
}

// Update shows a text about an activity, unless one about the same activity was shown just now.
func (l *ProgressLine) Update(doing, text string) { l.line.Update(doing, text) }

// End clears the line, so that what follows starts on a clean one.
func (l *ProgressLine) End() { l.line.End() }
