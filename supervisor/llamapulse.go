package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Activity lists the slots. llama-server 0.7.0 answers at once amid a batch, with the state at the loop's last turn, but not
// while it samples; other builds have the loop answer.
func (e *LlamaServer) Activity() string { return "/slots" }

// llamaSlot is what a slot says of itself.
type llamaSlot struct {
	IsProcessing bool `json:"is_processing"`
	Task         int  `json:"id_task"`
	Prompt       int  `json:"n_prompt_tokens"`           // that were handed to the model
	Processed    int  `json:"n_prompt_tokens_processed"` // of them, by finished batches
	Next         []struct {
		Decoded int `json:"n_decoded"`
	} `json:"next_token"`
}

// Work reads the list of slots.
func (e *LlamaServer) Work(answer []byte) (Work, bool) {
	var slots []llamaSlot
	if json.Unmarshal(answer, &slots) != nil {
		return Work{}, false
	}
	var w Work
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

// llamaProgress begins what a chunk of a stream says of its prompt.
var llamaProgress = []byte(`"prompt_progress":`)

// Pace reads {"prompt_progress":{"total":25009,"cache":0,"processed":512,"time_ms":176}}, wherever it stands.
func (e *LlamaServer) Pace(piece []byte) (Pace, bool) {
	at := bytes.LastIndex(piece, llamaProgress)
	if at < 0 {
		return Pace{}, false
	}
	var p struct {
		Cache     int     `json:"cache"`
		Processed int     `json:"processed"`
		Time      float64 `json:"time_ms"`
	}
	if json.NewDecoder(bytes.NewReader(piece[at+len(llamaProgress):])).Decode(&p) != nil {
		return Pace{}, false
	}
	return Pace{p.Processed - p.Cache, time.Duration(p.Time * float64(time.Millisecond))}, true
}
