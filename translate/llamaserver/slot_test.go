package llamaserver

import (
	"bytes"
	"testing"
)

func TestWire_Pin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body  [][]byte
		reuse bool
		want  string
	}{
		"one piece":         {[][]byte{[]byte(`{"a":{}}`)}, true, `{"a":{},"id_slot":3}`},
		"several pieces":    {[][]byte{[]byte(`{"a":1`), []byte(`,"b":2}`)}, false, `{"a":1,"b":2,"id_slot":3,"cache_prompt":false}`},
		"the brace alone":   {[][]byte{[]byte(`{"a":"}"`), []byte(`}`)}, true, `{"a":"}","id_slot":3}`},
		"a space behind it": {[][]byte{[]byte("{\"a\":1} \n")}, true, `{"a":1,"id_slot":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := string(bytes.Join(tt.body, nil))
			if got := string(bytes.Join(Wire{}.Pin(tt.body, 3, tt.reuse), nil)); got != tt.want {
				t.Errorf("%s", got)
			}
			if got := string(bytes.Join(tt.body, nil)); got != before { // it may be sent again, to another slot
				t.Errorf("the body has become %s", got)
			}
		})
	}
}
