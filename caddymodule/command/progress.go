package command

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// progressLine shows the progress of what a command waits for.
type progressLine struct {
	line     *terminal.Progress
	terminal bool
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{terminal.NewProgress(out), isTerminal(out)}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool { return terminal.Is(stream) }

// columnsOf returns the width of a terminal in characters, or 0 for another stream.
func columnsOf(stream any) int { return terminal.Columns(stream) }

func (l *progressLine) show(p runtimes.Progress) {
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
	l.update(p.Doing, text)
}

// update shows a text about an activity, unless one about the same activity was shown just now.
func (l *progressLine) update(doing, text string) { l.line.Update(doing, text) }

// end clears the line, so that what follows starts on a clean one.
func (l *progressLine) end() { l.line.End() }
