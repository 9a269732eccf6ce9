package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// size describes a number of bytes, of files and of memory, in decimal units.
func size(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// count describes a number of things, of which one is a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// when describes a moment in the near future, to the second.
func when(at, now time.Time) string {
	if left := at.Sub(now).Round(time.Second); left > 0 {
		return "in " + secondsInWords(left.Seconds())
	}
	return "now"
}

// ago describes a moment in the past, such as "3 minutes ago".
func ago(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case now.Sub(at) < time.Second:
		return "now"
	}
	return humanize.RelTime(at, now, "ago", "from now")
}

// moment describes a moment in the past or the future, such as "3 minutes ago" or "in 4 weeks".
func moment(t *resource.Time) string {
	if t == nil {
		return "never"
	}
	now := time.Now()
	if left, ok := strings.CutSuffix(humanize.RelTime(t.Time, now, "ago", "from now"), " from now"); ok {
		return "in " + left
	}
	return ago(t.Time, now)
}
