package llamaserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/singleflight"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Process is a llama-server process. It runs in the mode in which llama.cpp's own router runs its children: it reports its state on
// standard output, and ends when standard input closes. For a build without that mode, the state is taken from the log.
type Process struct {
	// Locate finds the executable. It is called for each launch, since the installed runtimes may change.
	Locate func() (string, error)
	// Runtimes is the folder that contains the runtimes, each in its own folder, all of which its executable may use. It may be empty.
	Runtimes string
	// TooOld says what to do if the executable in use, which reports a version, is too old for a model. It may be nil.
	TooOld func(version string) string

	probing   singleflight.Group // by path
	probed    sync.Map           // by path: a probedBuild
	mu        sync.Mutex
	libraries map[string]*library // by the executable's path
}

type probedBuild struct {
	build process.Build
	size  int64
	at    time.Time
}

// probeTimeout bounds the time that the engine may take to print its version. It usually takes 20 ms.
const probeTimeout = 20 * time.Second

// Probe returns the executable's version, flags and devices. The result is cached until the file changes. Who asks meanwhile waits for
// the same answer.
func (p *Process) Probe(ctx context.Context) (process.Build, error) {
	path, err := p.Locate()
	if err != nil {
		return process.Build{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return process.Build{}, fmt.Errorf("llama-server: %w", err)
	}
	for {
		if known, ok := p.known(path); ok && known.size == info.Size() && known.at.Equal(info.ModTime()) {
			return known.build, nil
		}
		probed := p.probing.DoChan(path, func() (any, error) {
			build, err := p.probe(ctx, path)
			if err == nil {
				p.probed.Store(path, probedBuild{build, info.Size(), info.ModTime()})
			} else if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return build, err
		})
		select {
		case r := <-probed:
			if r.Err == nil || ctx.Err() != nil || !errors.Is(r.Err, context.Canceled) && !errors.Is(r.Err, context.DeadlineExceeded) {
				return r.Val.(process.Build), r.Err
			} // else another caller has asked, and doesn't wait any more
		case <-ctx.Done():
			return process.Build{}, context.Cause(ctx)
		}
	}
}

// probe asks the executable. An error isn't cached.
func (p *Process) probe(ctx context.Context, path string) (process.Build, error) {
	version, err := ask(ctx, path, "--version")
	if err != nil {
		return process.Build{}, err
	}
	help, err := ask(ctx, path, "--help")
	if err != nil {
		return process.Build{}, err
	}
	build := process.Build{Engine: "llama.cpp", Version: cmp.Or(engine.LlamaVersion(version), "unknown"), Path: path, Flags: flagsOf(help)}
	build.Adapts = flags(build.Flags).has(unapplied)
	build.Root, build.Script = p.rootOf(path), engine.IsScript(path)
	build.Sockets = runtime.GOOS != "windows" && strings.Contains(build.Flags["--host"], ".sock")
	if args := p.ListDevices(build); args != nil {
		list, err := ask(ctx, path, args...)
		if openfiles.AreExhausted(err) {
			return process.Build{}, err
		}
		if err != nil {
			list = ""
		}
		build.Devices = p.Devices(list)
	}
	return build, nil
}

func (p *Process) rootOf(path string) string {
	below, err := filepath.Rel(p.Runtimes, path)
	if p.Runtimes == "" || err != nil || !filepath.IsLocal(below) {
		return runtimes.RootOf(path) // such as that of an image, which a link on PATH leads to
	}
	name, rest, _ := strings.Cut(filepath.ToSlash(below), "/")
	if rest == "" {
		return ""
	}
	return filepath.Join(p.Runtimes, name)
}

func (p *Process) known(path string) (probedBuild, bool) {
	known, ok := p.probed.Load(path)
	if !ok {
		return probedBuild{}, false
	}
	return known.(probedBuild), true
}

func ask(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := engine.Ask(ctx, path, args...)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, strings.Join(args, " "), err)
	}
	return out, nil
}

// Health returns the path of the health check. It needs no key, and answers 503 while the model is loading.
func (p *Process) Health() string { return "/health" }

// Stop sends the exit command, then closes standard input. SIGTERM doesn't work: in this mode an idle llama-server ignores
// it, and a busy one hangs.
func (p *Process) Stop() []process.StopStep {
	return []process.StopStep{
		{Action: process.StopWrite, Text: exitLine, Wait: 500 * time.Millisecond},
		{Action: process.StopCloseInput, Wait: 500 * time.Millisecond},
	}
}

// Activity returns the path of the list of slots. llama-server 0.7.0 answers at once during a batch, with the state of the
// loop's last turn, but not while it samples; in other builds the loop itself answers.
func (p *Process) Activity() string { return "/slots" }

type slot struct {
	IsProcessing bool `json:"is_processing"`
	Task         int  `json:"id_task"`
	Prompt       int  `json:"n_prompt_tokens"`           // passed to the model
	Processed    int  `json:"n_prompt_tokens_processed"` // processed by finished batches
	Next         []struct {
		Decoded int `json:"n_decoded"`
	} `json:"next_token"`
}

// Work parses the list of slots.
func (p *Process) Work(answer []byte) (process.Work, bool) {
	var slots []slot
	if json.Unmarshal(answer, &slots) != nil {
		return process.Work{}, false
	}
	var w process.Work
	var mark strings.Builder
	for _, s := range slots {
		decoded := 0
		for _, n := range s.Next {
			decoded += n.Decoded
		}
		if s.IsProcessing {
			w.Busy++
			if decoded == 0 {
				w.Tokens += max(0, s.Prompt-s.Processed)
			}
		}
		fmt.Fprintf(&mark, "%t %d %d %d %d\n", s.IsProcessing, s.Task, s.Prompt, s.Processed, decoded)
	}
	w.Mark = mark.String()
	return w, true
}

// promptProgress precedes the progress of the prompt in a chunk of a stream.
var (
	promptProgress = []byte(`"prompt_progress":`)
	progressWord   = []byte("_progress")
)

// Pace parses {"prompt_progress":{"total":25009,"cache":0,"processed":512,"time_ms":176}} anywhere in a chunk.
func (p *Process) Pace(piece []byte) (process.Pace, bool) {
	if !bytes.Contains(piece, progressWord) { // which is far quicker than LastIndex, and than a word that begins like every name
		return process.Pace{}, false
	}
	at := bytes.LastIndex(piece, promptProgress)
	if at < 0 {
		return process.Pace{}, false
	}
	var told struct {
		Cache     int     `json:"cache"`
		Processed int     `json:"processed"`
		Time      float64 `json:"time_ms"`
	}
	if json.NewDecoder(bytes.NewReader(piece[at+len(promptProgress):])).Decode(&told) != nil {
		return process.Pace{}, false
	}
	return process.Pace{Tokens: told.Processed - told.Cache, Time: time.Duration(told.Time * float64(time.Millisecond))}, true
}

// ownBatch is llama-server's default batch size, in tokens.
const ownBatch = 2048

// BatchSize returns the size of a logical batch, in tokens.
func (p *Process) BatchSize(s *schedule.Spec) int {
	return min(cmp.Or(s.BatchSize, ownBatch), s.ContextLength*s.Parallel)
}

// flagNames matches the names of a flag, at the beginning of a line of the help.
var flagNames = regexp.MustCompile(`^(?:--?[a-zA-Z][\w-]*,?\s+)+`)

// flagsOf returns the flags in the help, with their descriptions. A line begins with the names of a flag, separated by
// commas; indented lines continue the description. Removed flags, which the help lists as well, are left out.
func flagsOf(help string) flags {
	known := flags{}
	var names []string
	for line := range strings.Lines(help) {
		if head := flagNames.FindString(line); head != "" {
			names = strings.FieldsFunc(head, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
			line = strings.TrimPrefix(line, head)
			if strings.Contains(line, "has been removed") {
				names = nil
			}
		}
		for _, name := range names {
			known[name] = strings.TrimSpace(known[name] + " " + strings.TrimSpace(line))
		}
	}
	return known
}

// flags are the flags of a build, with their descriptions.
type flags map[string]string

func (f flags) has(flag string) bool {
	_, ok := f[flag]
	return ok
}

func (f flags) first(names ...string) string {
	for _, flag := range names {
		if f.has(flag) {
			return flag
		}
	}
	return ""
}

// deviceLine matches a line of --list-devices: "  CUDA0: NVIDIA GeForce RTX 3090 (24135 MiB, 23880 MiB free)".
var deviceLine = regexp.MustCompile(`(?m)^\s+(\w+): (.*) \((\d+) MiB, (\d+) MiB free\)`)

// sharedLine matches what the Vulkan backend says at the highest level of the log about a device that shares the machine's memory:
// "ggml_vulkan: 0 = AMD Radeon 780M (RADV PHOENIX) (radv) | uma: 1 | fp16: 1 | …".
var sharedLine = regexp.MustCompile(`(?m)ggml_vulkan: (\d+) = .* \| uma: 1 \|`)

// sharedTitles are parts of the names of devices of CUDA that share the machine's memory.
var sharedTitles = []string{"Orin", "Xavier", "Tegra", "Thor", "GB10"}

// contextBytes is what a process takes of a device of CUDA or ROCm besides its buffers: 604 MiB were measured on an H200.
const contextBytes = 604 << 20

// ListDevices returns the arguments that list the devices. Which of them share the machine's memory is said only at the highest
// level of the log.
func (p *Process) ListDevices(b process.Build) []string {
	switch known := flags(b.Flags); {
	case !known.has("--list-devices"):
		return nil
	case strings.Contains(known["-lv"], "5: "):
		return []string{"-lv", "5", "--list-devices"}
	default:
		return []string{"--list-devices"}
	}
}

// Devices parses the output of --list-devices. Apple's devices, those on the processor itself, and GPUs within a processor share the
// machine's memory. The result is never nil.
func (p *Process) Devices(list string) []process.Device {
	var shared []string
	for _, m := range sharedLine.FindAllStringSubmatch(list, -1) {
		shared = append(shared, "Vulkan"+m[1])
	}
	devices := []process.Device{}
	for _, m := range deviceLine.FindAllStringSubmatch(list, -1) {
		total, err := strconv.ParseInt(m[3], 10, 40)
		free, failed := strconv.ParseInt(m[4], 10, 40)
		if err != nil || failed != nil {
			continue
		}
		d := process.Device{Name: m[1], Title: m[2], Memory: total << 20, Free: free << 20}
		isNamed := func(title string) bool { return strings.Contains(d.Title, title) }
		switch kind := strings.TrimRight(d.Name, "0123456789"); kind {
		case "CUDA", "ROCm", "MUSA":
			d.Context = contextBytes
			d.Unified = slices.ContainsFunc(sharedTitles, isNamed)
		case "MTL", "Metal", "BLAS", "CPU":
			d.Unified = true
		default:
			d.Unified = slices.Contains(shared, d.Name)
		}
		devices = append(devices, d)
	}
	return devices
}
