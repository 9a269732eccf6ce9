package mlxlm

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

var (
	// exception matches the last line of a traceback: "ValueError: Model type foo not supported.".
	exception = regexp.MustCompile(`^(?:\w+\.)*\w*(?:Error|Exception|NotFound|Exit|Interrupt)(?:: .*)?$`)
	// usage matches an error about the arguments: "mlx_lm.server: error: unrecognized arguments: --foo".
	usage = regexp.MustCompile(`^[\w./-]+: error: (.+)$`)
	// noModule matches "/usr/bin/python3: No module named mlx_lm".
	noModule = regexp.MustCompile(`^\S+: (No module named .+)$`)
	// noPort matches an error about the port, on Linux, macOS and Windows.
	noPort = regexp.MustCompile(`^OSError: \[(?:Errno|WinError) (?:98|48|10048)\] `)
	// deadThread matches the beginning of the traceback of the thread that loads the model and generates. In Python 3.9 it has no name.
	deadThread = regexp.MustCompile(`^Exception in thread (?:.*\(_generate\)|Thread-1):$`)
	// logLine matches the beginning of a line of the log. Its submatch is the level.
	logLine = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - ([A-Z]+) - `)
)

// memoryRefused are parts of lines that report a failed memory allocation.
var memoryRefused = []string{
	"Insufficient Memory", "[metal::malloc]", "[malloc", "Unable to allocate", "MemoryError",
	"std::bad_alloc", "out of memory",
}

// harmless are exceptions about clients that have disconnected.
var harmless = []string{"BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError"}

// Line parses lines about the server's socket and the thread that generates, and errors.
func (p *Process) Line(line string) []schedule.Signal {
	switch {
	case strings.Contains(line, " - INFO - Starting httpd at "),
		strings.Contains(line, "UserWarning: mlx_lm.server is not recommended for production"):
		return []schedule.Signal{{Kind: schedule.SignalListening}}
	case deadThread.MatchString(line):
		return []schedule.Signal{{Kind: schedule.SignalDead, Text: "the engine's generation thread ended"}}
	case noPort.MatchString(line):
		const text = "it couldn't listen on its port"
		return []schedule.Signal{
			{Kind: schedule.SignalPortTaken}, {Kind: schedule.SignalTrouble, Text: text}, {Kind: schedule.SignalDead, Text: text},
		}
	default:
		return trouble(line)
	}
}

func trouble(line string) []schedule.Signal {
	text := ""
	if m := usage.FindStringSubmatch(line); m != nil {
		text = m[1]
	} else if m := noModule.FindStringSubmatch(line); m != nil {
		text = m[1]
	} else if exception.MatchString(line) && !isHarmless(line) {
		text = line
	}
	isMemory := slices.ContainsFunc(memoryRefused, func(mark string) bool { return strings.Contains(line, mark) })
	if text == "" && isMemory && !logLine.MatchString(line) {
		text = line // of a library, as it aborts the process
	}
	if text == "" {
		return nil
	}
	signals := []schedule.Signal{{Kind: schedule.SignalTrouble, Text: withoutPaths(text)}}
	if isMemory {
		signals = append(signals, schedule.Signal{Kind: schedule.SignalOutOfMemory})
	}
	return signals
}

func isHarmless(line string) bool {
	return slices.ContainsFunc(harmless, func(name string) bool { return strings.HasPrefix(line, name) })
}

var (
	quotedPath = regexp.MustCompile(`(['"])(?:[A-Za-z]:)?[/\\][^'"]*[/\\]([^'"/\\]*)['"]`)
	barePath   = regexp.MustCompile(`(^|[\s(=:])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'"]+[/\\])+`)
)

// withoutPaths leaves only the last element of each absolute path in a text, which clients may see.
func withoutPaths(text string) string {
	text = quotedPath.ReplaceAllString(text, "$1$2$1")
	return barePath.ReplaceAllString(text, "$1")
}

// Level returns the warning level for errors. The health checks aren't logged.
func (p *Process) Level(line string) slog.Level {
	switch m := logLine.FindStringSubmatch(line); {
	case strings.Contains(line, `"GET /health HTTP/`):
		return slog.LevelDebug - 1
	case m != nil && (m[1] == "ERROR" || m[1] == "CRITICAL"):
		return slog.LevelWarn
	case strings.HasPrefix(line, "Exception in thread "), exception.MatchString(line) && !isHarmless(line):
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
