package supervisor

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxLoggedLine is how many bytes of an engine's line are logged. Lines may contain whole prompts.
	maxLoggedLine = 1 << 10
	// An engine may log burstLines at once, and lineRate lines a second after that.
	burstLines = 100
	lineRate   = 20
	// graveEvery is the least time between logged lines above debug level: one request can cause many errors.
	graveEvery = time.Second
)

// lineLog logs an engine's output at a bounded rate, since clients can provoke output.
type lineLog struct {
	log *slog.Logger

	mu      sync.Mutex
	credit  float64   // lines that may be logged now
	last    time.Time // when the credit was counted; zero: never
	grave   time.Time // when the last line above debug was logged
	dropped int       // lines dropped since the last logged one
}

// write logs a line as an attribute of a constant message, or counts it as dropped.
func (l *lineLog) write(ctx context.Context, level slog.Level, line string) {
	if !l.log.Enabled(ctx, level) {
		return
	}
	dropped, ok := l.take(level, time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		l.log.Log(ctx, level, "lines of the engine were dropped", "number", dropped)
	}
	l.log.Log(ctx, level, "engine", "line", loggable(line))
}

// take reports whether a line may be logged, and how many were dropped before it.
func (l *lineLog) take(level slog.Level, now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.credit = burstLines
	} else {
		l.credit = min(burstLines, l.credit+now.Sub(l.last).Seconds()*lineRate)
	}
	l.last = now
	isGrave := level > slog.LevelDebug
	if l.credit < 1 || (isGrave && now.Sub(l.grave) < graveEvery) {
		l.dropped++
		return 0, false
	}
	l.credit--
	if isGrave {
		l.grave = now
	}
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}

// loggable returns the line truncated, without characters that could control a terminal or start a new line.
func loggable(line string) string {
	if len(line) > maxLoggedLine {
		end := maxLoggedLine
		for !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, line)
}
