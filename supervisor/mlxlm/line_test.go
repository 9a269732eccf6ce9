package mlxlm

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestLine(t *testing.T) {
	t.Parallel()
	type signals = []schedule.Signal
	trouble := func(text string) schedule.Signal {
		return schedule.Signal{Kind: schedule.SignalTrouble, Text: text}
	}
	dead := signals{{Kind: schedule.SignalDead, Text: "the engine's generation thread ended"}}
	listening := signals{{Kind: schedule.SignalListening}}
	noPort := signals{
		{Kind: schedule.SignalPortTaken}, trouble("it couldn't listen on its port"), {Kind: schedule.SignalDead, Text: "it couldn't listen on its port"},
	}
	noMemory := func(text string) signals { return signals{trouble(text), {Kind: schedule.SignalOutOfMemory}} }
	for line, want := range map[string]signals{
		"2026-11-20 17:52:24,736 - INFO - Starting httpd at 127.0.0.1 on port 18701...":                                                             listening,
		"/usr/lib/mlx_lm/server.py:1692: UserWarning: mlx_lm.server is not recommended for production as it only implements basic security checks.": listening,
		"Exception in thread Thread-1 (_generate):":                                                                                                 dead,
		"Exception in thread Thread-1:":                                  dead, // Python 3.9
		"Exception in thread Thread-7 (process_request_thread):":         nil,
		"Exception in thread Thread-7:":                                  nil,
		"OSError: [Errno 98] Address already in use":                     noPort,
		"OSError: [Errno 48] Address already in use":                     noPort,
		"OSError: [Errno 28] No space left on device":                    {trouble("OSError: [Errno 28] No space left on device")},
		"ValueError: Model type foobar not supported.":                   {trouble("ValueError: Model type foobar not supported.")},
		"safetensors._safetensors_rust.SafetensorError: too short":       {trouble("safetensors._safetensors_rust.SafetensorError: too short")},
		"KeyboardInterrupt":                                              {trouble("KeyboardInterrupt")},
		"FileNotFoundError: No safetensors found in /srv/models/a":       {trouble("FileNotFoundError: No safetensors found in a")},
		"FileNotFoundError: [Errno 2] No such file: '/srv/a b/c.x'":      {trouble("FileNotFoundError: [Errno 2] No such file: 'c.x'")},
		`FileNotFoundError: 'C:\models\a\config.json'`:                   {trouble("FileNotFoundError: 'config.json'")},
		"BrokenPipeError: [Errno 32] Broken pipe":                        nil,
		"ConnectionResetError: [Errno 104] Connection reset by peer":     nil,
		"mlx_lm.server: error: unrecognized arguments: --foo":            {trouble("unrecognized arguments: --foo")},
		"__main__.py: error: argument --port: invalid int value":         {trouble("argument --port: invalid int value")},
		"/usr/bin/python3: No module named mlx_lm":                       {trouble("No module named mlx_lm")},
		"RuntimeError: [metal::malloc] Resource limit (499000) exceeded": noMemory("RuntimeError: [metal::malloc] Resource limit (499000) exceeded"),
		"libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPU)": noMemory(
			"libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPU)"),
		"2026-11-20 17:52:25,322 - INFO - Prompt processing progress: 188/189":          nil,
		"2026-11-20 17:52:25,322 - WARNING - Failed to parse tool call (ValueError: x)": nil,
		`127.0.0.1 - - [20/Nov/2026 17:52:25] "POST /v1/completions HTTP/1.1" 200 -`:    nil,
		`  File "/usr/lib/python3.14/threading.py", line 1082, in _bootstrap_inner`:     nil,
		"    raise ValueError(msg)": nil,
		"":                          nil,
	} {
		if diff := cmp.Diff(want, (&Process{}).Line(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		"2026-11-20 17:52:24,736 - INFO - Starting httpd at 127.0.0.1 on port 18701...": slog.LevelDebug,
		"2026-11-20 17:52:24,736 - WARNING - Failed to parse tool call":                 slog.LevelDebug,
		"2026-11-20 17:52:24,736 - ERROR - JSONDecodeError: x":                          slog.LevelWarn,
		"Exception in thread Thread-1 (_generate):":                                     slog.LevelWarn,
		"ValueError: temperature must be at least 0":                                    slog.LevelWarn,
		"BrokenPipeError: [Errno 32] Broken pipe":                                       slog.LevelDebug,
		`127.0.0.1 - - [20/Nov/2026 17:52:24] "GET /health HTTP/1.1" 200 -`:             slog.LevelDebug - 1,
	} {
		if got := (&Process{}).Level(line); got != want {
			t.Errorf("%s: level %v, want %v", line, got, want)
		}
	}
}

func TestTried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"an answer":          {200, `{"object":"text_completion","choices":[{"index":0,"finish_reason":"length","text":"a"}]}`, ""},
		"a failed load":      {404, `{"error": "[Errno 2] No such file or directory: '/srv/m/config.json'"}`, "[Errno 2] No such file or directory: 'config.json'"},
		"another program":    {200, `<html>`, "what answers a first request is no mlx_lm.server"},
		"an error in a body": {200, `{"error":"no"}`, "no"},
		"no such endpoint":   {404, `Not Found`, "the engine answered a first request with status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := (&Process{}).Tried(c.status, []byte(c.answer)); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("error %q, want %q", got, c.want)
			}
		})
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for piece, want := range map[string]int{
		": keepalive 2048/8191\n\n":                          2048,
		": keepalive 1/9\n\n: keepalive 9/9\n\ndata: {}\n\n": 9,
		"data: {\"content\":\": keepalive 5/6\"}\n\n":        -1,
		": keepalive 99999999999999999999/1\n\n":             -1,
		"data: [DONE]\n\n":                                   -1,
		": keepalive":                                        -1,
		"":                                                   -1,
	} {
		got, ok := (&Process{}).Pace([]byte(piece))
		if ok != (want >= 0) || (ok && got.Tokens != want) {
			t.Errorf("%q: %d tokens, %t, want %d", piece, got.Tokens, ok, want)
		}
	}
}
