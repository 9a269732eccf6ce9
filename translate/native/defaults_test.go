package native

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": json.RawMessage("0.2"), "max_tokens": json.RawMessage("50"), "system_prompt": json.RawMessage(`"Be brief."`),
		"stop": json.RawMessage(`["x"]`),
	}
	for name, tt := range map[string]struct{ body, want string }{
		"all":         {`{"preset":"p","input":"a"}`, `{"input":"a","max_output_tokens":50,"stop":["x"],"system_prompt":"Be brief.","temperature":0.2}`},
		"its own":     {`{"temperature":1,"preset":"p","max_output_tokens":2,"system_prompt":"","stop":"y"}`, `{"temperature":1,"max_output_tokens":2,"system_prompt":"","stop":"y"}`},
		"null":        {`{"preset":"p","temperature":null,"system_prompt":null}`, `{"temperature":0.2,"system_prompt":"Be brief.","max_output_tokens":50,"stop":["x"]}`},
		"going on":    {`{"preset":"p","previous_response_id":"resp_1"}`, `{"previous_response_id":"resp_1","max_output_tokens":50,"stop":["x"],"temperature":0.2}`},
		"not really":  {`{"preset":"p","previous_response_id":null,"stop":1,"temperature":1}`, `{"previous_response_id":null,"stop":1,"temperature":1,"max_output_tokens":50,"system_prompt":"Be brief."}`},
		"other names": {`{"preset":"p","max_tokens":2,"stop":1,"temperature":1,"system_prompt":"s"}`, `{"max_tokens":2,"stop":1,"temperature":1,"system_prompt":"s","max_output_tokens":50}`},
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
	both := map[string]json.RawMessage{"max_tokens": json.RawMessage("1"), "max_completion_tokens": json.RawMessage("2"), "max_output_tokens": json.RawMessage("3")}
	for want, leftOut := range map[string]string{`{"max_output_tokens":3}`: "", `{"max_output_tokens":2}`: "max_output_tokens"} {
		delete(both, leftOut)
		got, err := WithDefaults(testkit.Scan(t, `{}`), "preset", both)
		if err != nil || string(got.Raw) != want {
			t.Errorf("%s, %v, want %s", got.Raw, err, want)
		}
		both["max_output_tokens"] = json.RawMessage("3")
	}
}
