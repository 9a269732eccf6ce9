package warm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPrint_Content: a change anywhere that is looked at makes another print, in files of all sizes; a name and a time don't.
func TestPrint_Content(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{
		"empty": 0, "tiny": 1, "a head": headBytes, "a byte more": headBytes + 1, "all samples": headBytes + samples*sampleBytes,
		"more than the samples": headBytes + samples*sampleBytes + 1, "large": headBytes + 40*sampleBytes + 7,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "model.gguf")
			content := bytes.Repeat([]byte("weights"), int(size)/7+1)[:size]
			name := func() string {
				t.Helper()
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				name, err := (&Print{Files: []string{path}}).name()
				if err != nil || !isID(name) {
					t.Fatalf("%q, %v", name, err)
				}
				return name
			}
			before := name()
			for _, at := range []int64{0, size / 3, headBytes - 1, headBytes, size - 1} {
				if at < 0 || at >= size || at > headBytes && at < size-1 {
					continue
				}
				content[at]++
				if name() == before {
					t.Errorf("byte %d doesn't count", at)
				}
				content[at]--
			}
			if size > 0 {
				content = content[:size-1]
				if name() == before {
					t.Error("the size doesn't count")
				}
				content = content[:size]
			}
			if name() != before {
				t.Error("the same content has another print")
			}
		})
	}
}

// TestPrint_Samples: weights that differ nearly everywhere are other weights.
func TestPrint_Samples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := int64(headBytes + 100*sampleBytes)
	names := map[string]bool{}
	for i, tt := range []struct {
		weight byte
		size   int64
	}{{0, size}, {1, size}, {2, size}, {0, size + 1}} { // zeros are alike wherever they are looked at
		path := filepath.Join(dir, string(rune('a'+i)))
		content := append(make([]byte, headBytes), bytes.Repeat([]byte{tt.weight}, int(tt.size-headBytes))...)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		name, err := (&Print{Files: []string{path}}).name()
		if err != nil {
			t.Fatal(err)
		}
		names[name] = true
	}
	if len(names) != 4 {
		t.Errorf("%d prints of four models", len(names))
	}
}
