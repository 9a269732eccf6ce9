package llamaserver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestCompletion_Refine(t *testing.T) {
	t.Parallel()
	const infill = `{"error":{"code":501,"message":"Infill is not supported by this model: prefix token is missing. ","type":"not_supported_error"}}`
	const long = `{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_prompt_tokens":3613,"n_ctx":1024}}`
	c := &request.Completion{Gap: &request.Gap{Suffix: "a"}}
	e := c.Refine(Wire{}.Fault(501, []byte(infill)))
	if e.Status() != 400 || e.Param != "suffix" || e.Code != "unsupported_value" {
		t.Errorf("%+v", e)
	}
	e = c.Refine(Wire{}.Fault(400, []byte(long)))
	if e.Param != "prompt" || e.Tokens != 3613 || e.Limit != 1024 || e.Kind != translate.KindContextOverflow {
		t.Errorf("%+v", e)
	}
	if e = (&request.Completion{}).Refine(translate.BrokenOff()); *e != *translate.BrokenOff() {
		t.Errorf("%+v", e)
	}
}

func TestDetokenized(t *testing.T) {
	t.Parallel()
	if got := string(bytes.Join(Wire{}.Detokenize(json.RawMessage(`[1, 2]`)).Body, nil)); got != `{"tokens":[1, 2]}` {
		t.Errorf("the request is %s", got)
	}
	if got, err := (Wire{}).Detokenized([]byte(`{"content":"a\n"}`)); got != "a\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, answer := range []string{``, `{}`, `{"content":3}`, `{"content":"a"`} {
		if _, err := (Wire{}).Detokenized([]byte(answer)); err == nil || err.Kind != translate.KindEngineFailed {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
