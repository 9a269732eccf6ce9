package mlxlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Process is an mlx_lm.server process. The server requires no key. It listens before its model is loaded, and goes on listening if
// the load fails, so it is tried by a request and watched by its output.
type Process struct {
	setup   process.Setup
	timeout time.Duration // of a question; 0: askTimeout

	mu     sync.Mutex
	probed map[string]probedServer // by command
}

// probedServer is what a command has told about its server.
type probedServer struct {
	version   string
	flags     map[string]string
	size      int64
	at        time.Time
	ofPackage string // the version of the package when it was asked; the executable may stay the same when that is replaced
}

// unknown is the version of a server that doesn't tell it.
const unknown = "unknown"

// Probe returns the server's version and flags, as far as they can be found out: any command may start a server. The result is
// cached until the executable or the installed package changes.
func (p *Process) Probe(ctx context.Context) (process.Build, error) {
	found, err := find(p.setup)
	if err != nil {
		return process.Build{}, err
	}
	build := process.Build{
		Engine: runtimes.MLXLM, Version: found.Version, Path: found.Path, Args: found.Args,
		Script: engine.IsScript(found.Path),
	}
	installed := installedVersion(found.Path)
	info, err := os.Stat(found.Path)
	if err != nil {
		return process.Build{}, err
	}
	command := strings.Join(slices.Concat([]string{found.Path}, found.Args), "\x00")
	p.mu.Lock()
	known, ok := p.probed[command]
	p.mu.Unlock()
	if !ok || known.size != info.Size() || !known.at.Equal(info.ModTime()) || known.ofPackage != installed {
		known = probedServer{version: found.Version, size: info.Size(), at: info.ModTime(), ofPackage: installed}
		if known.version == "" {
			known.version = installed
		}
		if err := known.ask(ctx, found, cmp.Or(p.timeout, askTimeout)); err != nil {
			return process.Build{}, err
		}
		p.mu.Lock()
		if p.probed == nil {
			p.probed = map[string]probedServer{}
		}
		p.probed[command] = known
		p.mu.Unlock()
	}
	build.Version, build.Flags = known.version, known.flags
	return build, nil
}

// ask asks the command for what isn't known yet. An error says that it couldn't be asked at all.
func (s *probedServer) ask(ctx context.Context, found runtimes.Runtime, timeout time.Duration) error {
	help, err := ask(ctx, timeout, found.Path, append(slices.Clip(found.Args), "--help"))
	if err := fatal(ctx, err); err != nil {
		return err
	}
	flags := map[string]string{}
	for _, m := range flagName.FindAllStringSubmatch(help, -1) {
		flags[m[1]] = ""
	}
	if _, isOurs := flags["--model"]; err == nil && isOurs { // else it isn't the help of an mlx_lm.server
		s.flags = flags
	}
	if s.version == "" {
		s.version = unknown
		if path, args := versionCommand(found.Path, found.Args); path != "" {
			told, err := ask(ctx, timeout, path, args)
			if err := fatal(ctx, err); err != nil {
				return err
			}
			if m := versionLine.FindString(told); err == nil && m != "" {
				s.version = strings.TrimSpace(m)
			}
		}
	}
	return nil
}

// fatal returns the errors of ask that aren't the command's.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if openfiles.AreExhausted(err) {
		return err
	}
	return nil
}

// Health returns the path of the health check. It succeeds whenever the process isn't frozen.
func (p *Process) Health() string { return "/health" }

// Stop has no steps: the server has nothing to save, and on Linux engines are started with SIGTERM blocked.
func (p *Process) Stop() []process.StopStep { return nil }

// Trial returns the request for one token. It has a prompt and no messages, which a model's template could refuse, and a bias of nothing:
// the server would apply those of the next request to another if a request before had none.
func (p *Process) Trial() (path string, body []byte) {
	return "/v1/completions", []byte(`{"model":"default_model","prompt":"Hi","max_tokens":1,"temperature":0,"logit_bias":{"0":0}}`)
}

// Tried returns nil for an answer with a choice. If the model can't be loaded, the server answers with status 404 and the reason.
func (p *Process) Tried(status int, answer []byte) error {
	parsed := gjson.ParseBytes(answer)
	switch reason := parsed.Get("error"); {
	case status == http.StatusOK && parsed.Get("choices.0").IsObject():
		return nil
	case reason.Type == gjson.String && reason.Str != "":
		return errors.New(withoutPaths(reason.Str))
	case status == http.StatusOK:
		return errors.New("what answers a first request is no mlx_lm.server")
	default:
		return fmt.Errorf("the engine answered a first request with status %d", status)
	}
}

// progress matches the comments by which the server tells how far a prompt is: ": keepalive 2048/8191".
var progress = regexp.MustCompile(`(?m)^: keepalive (\d{1,9})/\d{1,9}$`)

// Pace parses the last such comment in a piece of an answer. The time that it took isn't known.
func (p *Process) Pace(piece []byte) (process.Pace, bool) {
	all := progress.FindAllSubmatch(piece, -1)
	if len(all) == 0 {
		return process.Pace{}, false
	}
	tokens, err := strconv.Atoi(string(all[len(all)-1][1]))
	return process.Pace{Tokens: tokens}, err == nil
}

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
