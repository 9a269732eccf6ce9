package fakeengine

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// birth is the process's start, from which the log's times count.
var birth = time.Now()

// silent is set before anything is logged, if nothing is to be.
var silent atomic.Bool

// logf writes a line of the real log to standard error: time since the start, level (I, W or E), text.
func logf(level byte, format string, a ...any) {
	if silent.Load() {
		return
	}
	d := time.Since(birth)
	stamp := fmt.Sprintf("%d.%02d.%03d.%03d", int(d.Minutes()), int(d.Seconds())%60, d.Milliseconds()%1000, d.Microseconds()%1000)
	// One write for each line keeps lines whole. Nobody may be there to read them any more.
	_, _ = fmt.Fprintf(os.Stderr, "%s %c %s\n", stamp, level, fmt.Sprintf(format, a...))
}

// make makes the noise, once or from now on.
func (n *Noise) make() {
	if n.Every == 0 {
		n.write()
		return
	}
	go func() {
		for {
			n.write()
			time.Sleep(n.Every)
		}
	}()
}

// write prints the noise and returns only when all of it is in the pipe.
func (n *Noise) write() {
	to := os.Stderr
	if n.Stdout {
		to = os.Stdout
	}
	_, _ = to.WriteString(n.Text)
	const most = 64 << 10
	line := n.LineBytes
	if line <= 0 {
		line = n.Bytes
	}
	column := 0
	for left := n.Bytes; left > 0; {
		size := min(line-column, left, most)
		part := strings.Repeat("#", size)
		column += size
		if column == line || size == left {
			part, column = part[:size-1]+"\n", 0
		}
		left -= size
		_, _ = to.WriteString(part)
	}
}
