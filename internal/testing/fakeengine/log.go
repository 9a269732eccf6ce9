package fakeengine

import (
	"fmt"
	"os"
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
