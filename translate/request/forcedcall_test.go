package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestForcedFormat(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ parameters, want string }{
		"unknown":      {``, `{"type":"object","properties":{},"additionalProperties":false}`},
		"none":         {`{"type":"object"}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		"any":          {`{"type":"object","additionalProperties":true}`, `{"type":"object","additionalProperties":true}`},
		"references":   {`{"properties":{"a":{"$ref":"#/$defs/x"},"$ref":{"enum":[{"$ref":"#/b"}]}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"}}}}`, `{"properties":{"a":{"$ref":"#/$defs/t0/$defs/x"},"$ref":{"enum":[{"$ref":"#/b"}]}},"$defs":{"x":{"items":{"$ref":"#/$defs/t0/$defs/x"}}}}`},
		"alternatives": {`{"anyOf":[{"$ref":"#/$defs/x"}]}`, `{"anyOf":[{"$ref":"#/$defs/t0/$defs/x"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			format := gjson.Parse(ForcedFormat([]Tool{{Name: "f", Parameters: tt.parameters}}))
			if diff := cmp.Diff(tt.want, format.Get(`json_schema.schema.$defs.t0`).Raw); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
