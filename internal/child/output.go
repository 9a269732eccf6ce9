package child

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxLoggedLine is how many bytes of a child's line are logged. Lines may contain whole prompts.
	maxLoggedLine = 1 << 10
	// A child may log burstLines at once, and lineRate lines a second after that.
	burstLines = 100
	lineRate   = 20
)

// LineLog logs a child's output at a bounded rate, since clients can provoke output. Each line is an attribute of a constant message.
type LineLog struct {
	Log     *slog.Logger
	Message string
	Noun    string        // "engine", for the message that lines were dropped
	Grave   time.Duration // the least time between logged lines above debug level: one request can cause many errors

	mu      sync.Mutex
	credit  float64   // lines that may be logged now
	last    time.Time // when the credit was counted; zero: never
	grave   time.Time // when the last line above debug was logged
	dropped int       // lines dropped since the last logged one
}

// Write logs a line, or counts it as dropped.
func (l *LineLog) Write(ctx context.Context, level slog.Level, line string) {
	if !l.Log.Enabled(ctx, level) {
		return
	}
	dropped, ok := l.take(level, time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		l.Log.Log(ctx, level, "lines of the "+l.Noun+" were dropped", "number", dropped)
	}
	l.Log.Log(ctx, level, l.Message, "line", loggable(line))
}

// take reports whether a line may be logged, and how many were dropped before it.
func (l *LineLog) take(level slog.Level, now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.credit = burstLines
	} else {
		l.credit = min(burstLines, l.credit+now.Sub(l.last).Seconds()*lineRate)
	}
	l.last = now
	isGrave := level > slog.LevelDebug && l.Grave > 0 // which no number of other lines keeps from the log
	if isGrave && now.Sub(l.grave) < l.Grave || !isGrave && l.credit < 1 {
		l.dropped++
		return 0, false
	}
	if isGrave {
		l.grave = now
	} else {
		l.credit--
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

// MaxLine is how many bytes of a line are kept. A child can write lines of any length.
const MaxLine = 64 << 10

// LineWriter splits its input into lines. Lines are truncated at MaxLine, and empty ones skipped. Write never fails, since a
// child blocks when nobody reads its output.
type LineWriter struct {
	Emit  func(line string) // gets each line, as valid UTF-8 without its end
	Heard func()            // called on each Write before the lines are emitted; may be nil
	rest  []byte
}

func (w *LineWriter) Write(p []byte) (int, error) {
	if w.Heard != nil {
		w.Heard()
	}
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.add(p)
			return n, nil
		}
		w.add(p[:i])
		w.Flush()
		p = p[i+1:]
	}
}

func (w *LineWriter) add(p []byte) {
	w.rest = append(w.rest, p[:min(len(p), MaxLine-len(w.rest))]...)
}

// Flush emits an unfinished line, at the end of the input.
func (w *LineWriter) Flush() {
	if line := strings.TrimRight(string(w.rest), "\r"); line != "" {
		w.Emit(strings.ToValidUTF8(line, "\uFFFD"))
	}
	w.rest = w.rest[:0]
}

// Pipes are a child's standard input and outputs. The outputs aren't exec's, because Cmd.Wait would wait for their end, or close them
// before they are read.
type Pipes struct {
	Stdin io.WriteCloser

	theirs, ours []*os.File // standard output, then standard error
	reading      []*os.File
	readers      sync.WaitGroup
}

// OpenPipes sets the pipes of a command that isn't started yet.
func OpenPipes(cmd *exec.Cmd) (*Pipes, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &Pipes{Stdin: stdin}
	for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			p.Close()
			return nil, err
		}
		p.ours, p.theirs = append(p.ours, r), append(p.theirs, w)
		*to = w
	}
	return p, nil
}

// Read starts to read both outputs of a started command. It calls emit for each line, and heard, which may be nil, for each write.
func (p *Pipes) Read(emit func(string), heard func()) { p.read(p.ours, emit, heard) }

func (p *Pipes) read(outputs []*os.File, emit func(string), heard func()) {
	closeAll(p.theirs)
	p.reading = outputs
	for _, r := range outputs {
		p.readers.Go(func() {
			w := &LineWriter{Emit: emit, Heard: heard}
			_, _ = io.Copy(w, r)
			w.Flush()
		})
	}
}

// Drain waits for the end of what is read, but not longer than an exited child may be the only one that writes.
func (p *Pipes) Drain() {
	closed := make(chan struct{})
	timer := time.AfterFunc(outputDelay, func() {
		closeAll(p.reading)
		close(closed)
	})
	p.readers.Wait()
	if !timer.Stop() {
		<-closed // a reader may return before its file is closed
	}
}

// Close may be called several times.
func (p *Pipes) Close() {
	_ = p.Stdin.Close()
	closeAll(p.theirs)
	closeAll(p.ours)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
