package supervisor

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

const (
	llamaState = "cmd_child_to_router:state:"
	llamaExit  = "cmd_router_to_child:exit\n"
)

// llamaTroubles are the marks of lines that say why a load fails.
var llamaTroubles = []string{
	"error loading model: ", "gguf_init_from_reader: ", "gguf_init_from_file: ", "error: invalid argument: ", "GGML_ASSERT",
	"error while handling", "mtmd_init_from_file: error: ", "failed to load draft model", "failed to initialize speculative decoding context: ",
	"failed to allocate", "insufficient memory", "out of memory",
}

// llamaMemory are the marks of lines that say that memory was refused.
var llamaMemory = []string{"insufficient memory", "out of memory", "failed to allocate", "unable to allocate"}

var llamaBuffer = regexp.MustCompile(`buffer size =\s*([\d.]+) MiB`)

// Line reads the state lines, and in the log what decides about the load or tells of it.
func (e *LlamaServer) Line(line string) []Signal {
	if state, ok := strings.CutPrefix(line, llamaState); ok {
		return llamaStateSignals(state)
	}
	switch {
	case strings.Contains(line, "listening on http"), strings.Contains(line, "listening on unix"):
		return []Signal{{Kind: SignalReady}} // after the load, in all versions
	case strings.Contains(line, "couldn't bind"):
		return []Signal{{Kind: SignalPortTaken}, {Kind: SignalTrouble, Text: "it couldn't listen on its socket or port"}}
	case strings.Contains(line, "Flash Attention") || strings.Contains(line, "flash_attn "):
		return llamaFlash(line)
	}
	if !strings.Contains(line, "buffer size") {
		return llamaTrouble(line)
	}
	if m := llamaBuffer.FindStringSubmatch(line); m != nil {
		mebibytes, _ := strconv.ParseFloat(m[1], 64)
		return []Signal{{Kind: SignalBuffer, Bytes: int64(mebibytes * (1 << 20))}}
	}
	return nil
}

func llamaTrouble(line string) []Signal {
	var signals []Signal
	for _, mark := range llamaTroubles {
		if i := strings.Index(line, mark); i >= 0 {
			signals = append(signals, Signal{Kind: SignalTrouble, Text: strings.TrimPrefix(line[i:], "error loading model: ")})
			break
		}
	}
	for _, mark := range llamaMemory {
		if strings.Contains(line, mark) {
			return append(signals, Signal{Kind: SignalOutOfMemory})
		}
	}
	return signals
}

func llamaFlash(line string) []Signal {
	switch {
	case strings.Contains(line, "enabled"):
		return []Signal{{Kind: SignalFlashAttention, Toggle: On}}
	case strings.Contains(line, "disabled"):
		return []Signal{{Kind: SignalFlashAttention, Toggle: Off}}
	default:
		return nil
	}
}

func llamaStateSignals(state string) []Signal {
	switch s := gjson.Parse(state); s.Get("state").Str {
	case "ready":
		return []Signal{{Kind: SignalReady}}
	case "loading":
		p := s.Get("payload")
		stages := p.Get("stages").Array()
		done := 0.0
		for i, stage := range stages {
			if stage.Str == p.Get("current").Str {
				done = (float64(i) + p.Get("value").Num) / float64(len(stages))
			}
		}
		return []Signal{{Kind: SignalProgress, Progress: done}}
	default:
		return []Signal{{}} // said by the protocol, of no use to us
	}
}

// llamaError is the prefix of an error: "0.00.055.287 E srv  load_model: …".
var llamaError = regexp.MustCompile(`^[\d.]+ E `)

// Level is warning for what the engine calls an error. Its own warnings come with every second request.
func (e *LlamaServer) Level(line string) slog.Level {
	switch {
	case strings.HasPrefix(line, llamaState):
		return slog.LevelDebug - 1
	case llamaError.MatchString(line):
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
