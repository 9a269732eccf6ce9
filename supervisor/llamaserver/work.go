package llamaserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Activity returns the path of the list of slots. llama-server 0.7.0 answers at once during a batch, with the state of the
// loop's last turn, but not while it samples; in other builds the loop itself answers.
func (p *Process) Activity() string { return "/slots" }

// slot is an entry of the list of slots.
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
