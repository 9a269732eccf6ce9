package llamaserver

import (
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

func TestProcess_Work(t *testing.T) {
	t.Parallel()
	e := &Process{}
	for name, tt := range map[string]struct {
		answer       string
		busy, tokens int
	}{
		"idle": {`[{"id":0,"is_processing":false},{"id":1,"is_processing":false}]`, 0, 0},
		"amid the batch from 512 to 2560": {
			`[{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens":2560,"n_prompt_tokens_processed":512,"next_token":[{"n_decoded":0}]}]`, 1, 2048,
		},
		"amid its answer": {
			`[{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens":9,"n_prompt_tokens_processed":9,"next_token":[{"n_decoded":4}]}]`, 1, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ok := e.Work([]byte(tt.answer))
			if !ok || w.Busy != tt.busy || w.Tokens != tt.tokens {
				t.Errorf("%+v, %t", w, ok)
			}
		})
	}
	if _, ok := e.Work([]byte(`{"error":{}}`)); ok {
		t.Error("an error is no list of slots")
	}
	told := func(tokens, ms string) string {
		return `data: {"prompt_progress":{"total":9000,"cache":0,"processed":` + tokens + `,"time_ms":` + ms + "}}\n\n"
	}
	if pace, ok := e.Pace([]byte(told("0", "0") + told("512", "176.5"))); !ok || pace != (process.Pace{Tokens: 512, Time: 176500 * time.Microsecond}) {
		t.Errorf("pace %+v, %t", pace, ok)
	}
}
