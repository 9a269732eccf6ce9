package llamaserver

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestDecoder_AFormatThatTheModelMisses(t *testing.T) {
	t.Parallel()
	const fault = `{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}`
	for name, tt := range map[string]struct {
		frames []string
		status int
	}{
		"by what it says":              {[]string{`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],"id":"x"}`, fault}, 502},
		"by how the request begins it": {[]string{fault}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Wire{}.Decoder()
			var got *translate.Error
			for _, frame := range tt.frames {
				if err := d.Feed([]byte("data: "+frame+"\n\n"), func(ev translate.Event) error {
					if ev, ok := ev.(translate.Fault); ok {
						got = ev.Err
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if got == nil || got.Status() != tt.status || got.EffectiveCode() != "format_not_met" {
				t.Errorf("%v, want status %d", got, tt.status)
			}
		})
	}
}
