package child

import (
	"bytes"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestLoggable(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plain, with\ttab":          "plain, with\ttab",
		"\x1b[2Jgone\x07":           "\uFFFD[2Jgone\uFFFD",
		"a\rb\u2028c\u202Ed\u0085e": "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe",
		"Größe 大":                   "Größe 大",
	} {
		if got := loggable(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := loggable(strings.Repeat("大", 10_000)); len(got) > maxLoggedLine+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "大…") {
		t.Errorf("a long line: %d bytes, ending in %q", len(got), got[len(got)-8:])
	}
}

// What a child writes can neither fill the disk nor hide that it was cut.
func TestLineLog_IsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level         slog.Level
		grave         time.Duration
		first, second int // lines in the first moment, and ten seconds later
	}{
		"what it says":         {slog.LevelDebug, time.Second, burstLines, burstLines},
		"what all of it says":  {slog.LevelInfo, 0, burstLines, burstLines},
		"what it calls errors": {slog.LevelWarn, time.Second, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				l := LineLog{Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})), Message: "engine", Noun: "engine", Grave: c.grave}
				const all = 1000
				for _, want := range []int{c.first, c.second} {
					text.Reset()
					for range all {
						l.Write(t.Context(), c.level, "noise")
					}
					if got := strings.Count(text.String(), "line=noise"); got != want {
						t.Errorf("%d lines were logged, want %d", got, want)
					}
					time.Sleep(10 * time.Second)
				}
				if !strings.Contains(text.String(), "were dropped\" number=") {
					t.Errorf("that lines were dropped isn't told:\n%.300s", text.String())
				}
			})
		})
	}
}

// No number of other lines keeps an error from the log.
func TestLineLog_ErrorsComeThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := LineLog{Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})), Message: "engine", Noun: "engine", Grave: time.Second}
		for range 10 * burstLines {
			l.Write(t.Context(), slog.LevelDebug, "noise")
		}
		l.Write(t.Context(), slog.LevelWarn, "grave")
		if !strings.Contains(text.String(), "line=grave") {
			t.Error("the error isn't logged")
		}
	})
}

// Another process that holds a child's output open doesn't delay its end for long.
func TestPipes_HeldOpen(t *testing.T) {
	t.Parallel()
	o, err := OpenPipes(&exec.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	stranger := o.theirs[0]
	o.theirs = o.theirs[1:]
	o.Read(func(line string) { lines <- line }, func() {})
	if _, err := stranger.WriteString("half a line"); err != nil {
		t.Fatal(err)
	}
	o.Drain()
	if line := <-lines; line != "half a line" {
		t.Errorf("line %q", line)
	}
	if _, err := stranger.WriteString("more"); err == nil {
		t.Error("it is still read")
	}
	_ = stranger.Close()
	o.Close()
}
