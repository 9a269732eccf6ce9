package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestBody_WithDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": json.RawMessage("0.2"), "max_tokens": json.RawMessage("50"), "system_prompt": json.RawMessage(`"Be brief."`),
	}
	for name, tt := range map[string]struct{ body, want string }{
		"all":            {`{"preset":"p","messages":[{"role":"user"}]}`, `{"messages":[{"role":"system","content":"Be brief."},{"role":"user"}],"max_tokens":50,"temperature":0.2}`},
		"its own":        {`{"temperature":1,"preset":"p","max_tokens":2}`, `{"temperature":1,"max_tokens":2}`},
		"another name":   {`{"preset":"p","max_completion_tokens":2}`, `{"max_completion_tokens":2,"temperature":0.2}`},
		"null":           {`{"preset":"p","temperature":null}`, `{"temperature":0.2,"max_tokens":50}`},
		"own system":     {`{"preset":"p","messages":[{"role":"system"}]}`, `{"messages":[{"role":"system"}],"max_tokens":50,"temperature":0.2}`},
		"developer":      {`{"preset":"p","messages":[{"role":"developer"}]}`, `{"messages":[{"role":"developer"}],"max_tokens":50,"temperature":0.2}`},
		"no messages":    {`{"preset":"p","prompt":"x"}`, `{"prompt":"x","max_tokens":50,"temperature":0.2}`},
		"empty messages": {`{"preset":"p","messages":[ ]}`, `{"messages":[{"role":"system","content":"Be brief."}],"max_tokens":50,"temperature":0.2}`},
		"odd messages":   {`{"preset":"p","messages":{}}`, `{"messages":{},"max_tokens":50,"temperature":0.2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := WithDefaults(testkit.Scan(t, tt.body), "preset", defaults)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
