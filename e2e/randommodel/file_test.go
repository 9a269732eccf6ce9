package randommodel

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func made(t *testing.T, s Shape, seed uint64) []byte {
	t.Helper()
	shipped, err := os.ReadFile("../../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "models", "m.gguf")
	if err := Write(path, s, seed, shipped); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestWrite_TheSeedDecides(t *testing.T) {
	t.Parallel()
	one, again, other := made(t, Dense, 1), made(t, Dense, 1), made(t, Dense, 2)
	if !bytes.Equal(one, again) {
		t.Error("the same seed makes another model")
	}
	if len(one) != len(other) || bytes.Equal(one, other) {
		t.Errorf("other weights of the same shape have %d bytes instead of %d, or are the same", len(other), len(one))
	}
}

func TestWrite_OfNoModel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.gguf")
	for name, other := range map[string][]byte{"nothing": nil, "a text": []byte("This text is long enough to have a header."), "a part": made(t, Dense, 1)[:1000]} {
		if err := Write(path, Dense, 1, other); err == nil {
			t.Errorf("%s has a tokenizer", name)
		}
	}
}

func TestHalf(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{0, 1, -1, 0.5, 0.1, -0.03, 0.0002, 4.6} {
		bits := half(v)
		got := math.Ldexp(1+float64(bits&0x3ff)/1024, int(bits>>10&0x1f)-15)
		if bits&0x7fff == 0 {
			got = 0
		}
		if bits&0x8000 != 0 {
			got = -got
		}
		if math.Abs(got-v) > math.Abs(v)/1024 {
			t.Errorf("%v is written as %v", v, got)
		}
	}
}
