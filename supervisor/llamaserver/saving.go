package llamaserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// savePath is the flag that names the folder for states of slots.
const savePath = "--slot-save-path"

// savesNothing lists arguments that make a state useless: the engine forgets it while it sleeps, doesn't use it, or has other slots
// than those of the Spec. A folder of the operator's own is left to the operator.
var savesNothing = []string{
	"--sleep-idle-seconds", "--no-cache-prompt", "-np", "--parallel", "-kvu", "--kv-unified", "--kv-unified-per-slot", savePath,
}

// CanSave reports whether the build can, and no argument keeps it from doing so.
func (p *Process) CanSave(s *schedule.Spec, b process.Build) bool {
	return flags(b.Flags).has(savePath) && s.Model.Type == catalog.TypeLLM &&
		!slices.ContainsFunc(s.Args, func(arg string) bool { return slices.Contains(savesNothing, nameOf(arg)) })
}

// nameOf returns the usual spelling of a flag: the parser takes underscores for hyphens.
func nameOf(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	if strings.HasPrefix(name, "--") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// Arguments that make no difference to a state. Whatever isn't listed here counts, since the engine itself checks little: it takes states
// that were made with other weights or another RoPE base, and answers nonsense. The context length is no matter, as long as
// it isn't exceeded.
var (
	harmless = []string{ // with a value
		"-t", "--threads", "-tb", "--threads-batch", "-td", "--threads-draft", "-tbd", "--threads-batch-draft", "--threads-http",
		"-C", "--cpu-mask", "-Cr", "--cpu-range", "--cpu-strict", "--prio", "--poll",
		"-Cb", "--cpu-mask-batch", "-Crb", "--cpu-range-batch", "--cpu-strict-batch", "--prio-batch", "--poll-batch", "--numa",
		"-c", "--ctx-size", "-b", "--batch-size", "-ub", "--ubatch-size", "-lm", "--load-mode",
		"-cram", "--cache-ram", "-ctxcp", "--ctx-checkpoints", "--swa-checkpoints", "-cms", "--checkpoint-min-step",
		"-n", "--predict", "--n-predict", "-s", "--seed", "--temp", "--temperature", "--top-k", "--top-p", "--min-p",
		"-lv", "--verbosity", "--log-verbosity", "--log-file", "--log-colors", "-a", "--alias", "--tags", "--port", "--host",
		"-to", "--timeout", "--sse-ping-interval", "--api-key", "--api-key-file", "--spec-draft-n-max", "--spec-draft-n-min",
	}
	harmlessAlone = []string{
		"--mlock", "--mmap", "--no-mmap", "--metrics", "--props", "--slots", "--no-slots", "--offline", "--perf", "--no-perf",
		"--warmup", "--no-warmup", "-v", "--verbose", "--log-verbose", "--log-prefix", "--no-log-prefix",
		"--log-timestamps", "--no-log-timestamps", "--log-disable", "--ui", "--webui", "--no-ui", "--no-webui", "--check-tensors",
		"--cache-prompt", "--cache-idle-slots", "--no-cache-idle-slots", "-cb", "--cont-batching",
	}
)

// Print returns the slots, flash attention, experts and devices, and the arguments that count. Of a file that an argument names, its size
// and time count, too.
func (p *Process) Print(s *schedule.Spec, b process.Build) string {
	var out strings.Builder
	fmt.Fprintf(&out, "np %d, fa %d, experts %d", s.Parallel, s.FlashAttention, s.Experts)
	for _, d := range b.Devices {
		fmt.Fprintf(&out, ", device %q", d.Name)
	}
	skip := false
	for _, arg := range s.Args {
		name := nameOf(arg)
		switch {
		case skip:
			skip = false
		case slices.Contains(harmlessAlone, name):
		case slices.Contains(harmless, name):
			skip = name == arg || !strings.Contains(arg, "=")
		default:
			fmt.Fprintf(&out, ", %q%s", arg, filesOf(arg))
		}
	}
	return out.String()
}

// filesOf describes the files that an argument names, as in --lora /a.gguf or --lora-scaled /a.gguf:0.5,/b.gguf:1.
func filesOf(arg string) string {
	var all strings.Builder
	for part := range strings.SplitSeq(arg, ",") {
		path, _, _ := strings.Cut(part, ":")
		for _, path := range []string{part, path} {
			if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() {
				fmt.Fprintf(&all, " (%d bytes of %s)", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
				break
			}
		}
	}
	return all.String()
}

// Save returns the request that saves a slot. The name of a file must be a plain one.
func (p *Process) Save(slot int, file string) (path string, body []byte) {
	return slotRequest(slot, "save", file)
}

// Restore returns the request that restores a slot.
func (p *Process) Restore(slot int, file string) (path string, body []byte) {
	return slotRequest(slot, "restore", file)
}

func slotRequest(slot int, action, file string) (path string, body []byte) {
	return fmt.Sprintf("/slots/%d?action=%s", slot, action), fmt.Appendf(nil, `{"filename":%q}`, file)
}

type slotAnswer struct {
	Saved    *int  `json:"n_saved"`
	Written  int64 `json:"n_written"`
	Restored *int  `json:"n_restored"`
	Read     int64 `json:"n_read"`
	Timings  struct {
		Save    float64 `json:"save_ms"`
		Restore float64 `json:"restore_ms"`
	} `json:"timings"`
}

var errNoState = errors.New("the engine's answer doesn't say what it did")

// Saved parses {"id_slot":0,"filename":"x","n_saved":273,"n_written":843172,"timings":{"save_ms":0.465}}.
func (p *Process) Saved(answer []byte) (process.SlotState, error) {
	return slotState(answer, func(a *slotAnswer) (*int, int64, float64) { return a.Saved, a.Written, a.Timings.Save })
}

// Restored parses {"id_slot":0,"filename":"x","n_restored":273,"n_read":843172,"timings":{"restore_ms":0.307}}.
func (p *Process) Restored(answer []byte) (process.SlotState, error) {
	return slotState(answer, func(a *slotAnswer) (*int, int64, float64) { return a.Restored, a.Read, a.Timings.Restore })
}

func slotState(answer []byte, in func(*slotAnswer) (tokens *int, bytes int64, milliseconds float64)) (process.SlotState, error) {
	var a slotAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return process.SlotState{}, fmt.Errorf("%w: %w", errNoState, err)
	}
	tokens, bytes, milliseconds := in(&a)
	if tokens == nil || *tokens < 0 || bytes < 0 || milliseconds < 0 {
		return process.SlotState{}, errNoState
	}
	return process.SlotState{Tokens: *tokens, Bytes: bytes, Took: time.Duration(milliseconds * float64(time.Millisecond))}, nil
}

var _ process.Saver = (*Process)(nil)
