package endpoint

import (
	"bytes"
	"net/http"
	"testing"
	"testing/iotest"
)

// What has been read decides how much memory is taken, not what the client says of its body.
func TestBody_BufferGrowsWithWhatComes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		told, sent int
		encoded    bool
		most       float64 // times what came
	}{
		"told and sent":     {4 << 20, 4 << 20, false, 1.01},
		"told":              {64 << 20, 1 << 20, false, 4.1},
		"told, little":      {64 << 20, 100, false, 700},
		"untold":            {0, 10 << 20, false, 1.26},
		"encoded":           {1000, 10 << 20, true, 1.26},
		"encoded, untold":   {0, 1 << 20, true, 1.26},
		"more than is told": {1000, 1 << 20, true, 1.26},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openNode(t)
			c := &Call{Site: NewSite(Config{}), Node: n, Request: &http.Request{ContentLength: int64(tt.told)}, Held: new(heldBuffer)}
			c.Claim = n.Access.Bodies.Claim("somebody")
			sent := bytes.Repeat([]byte("x"), tt.sent)
			err := readAll(c, iotest.HalfReader(bytes.NewReader(sent)), 64<<20, tt.encoded)
			if err != nil || !bytes.Equal(c.Held.data, sent) {
				t.Fatalf("%d bytes, %v", len(c.Held.data), err)
			}
			if held := n.Access.Bodies.Held(); float64(held) > tt.most*float64(tt.sent) {
				t.Errorf("%d bytes are counted for %d", held, tt.sent)
			}
			c.Claim.Release()
		})
	}
}
