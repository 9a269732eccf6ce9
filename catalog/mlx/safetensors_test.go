package mlx

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadWeights_HugeHeadersAreBounded: many files with the longest header are not all read.
func TestReadWeights_HugeHeadersAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model-1.safetensors")
	blank := append(binary.LittleEndian.AppendUint64(nil, maxSafetensorsHeader), []byte(strings.Repeat(" ", 1<<20))...)
	if err := os.WriteFile(path, blank, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxSafetensorsHeader+8); err != nil {
		t.Fatal(err)
	}
	w, err := ReadWeights(filepath.Dir(path))
	if err == nil || w.left < maxHeaderBytes-4<<20 {
		t.Errorf("%d bytes of %d are left: %v", w.left, maxHeaderBytes, err)
	}
	spent := newWeights()
	spent.left = 10
	_, err = spent.parse(strings.NewReader(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`))
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("beyond the bound: %v", err)
	}
}

// TestReadWeights_ShippedModel: packed weights are counted as what they stand for.
func TestReadWeights_ShippedModel(t *testing.T) {
	t.Parallel()
	w, err := ReadWeights("../../testdata/mlx/lmcaddy/tinychat-mlx-4bit")
	if err != nil {
		t.Fatal(err)
	}
	if counted := w.Parameters(Quantization{Bits: 4}); counted != w.Declared && w.Declared != 0 || counted == 0 {
		t.Errorf("%d weights counted, %d declared", counted, w.Declared)
	}
}

// FuzzWeights: an invalid header of a safetensors file is only an error.
func FuzzWeights(f *testing.F) {
	f.Add([]byte(`{"__metadata__":{"format":"mlx"},"a.weight":{"dtype":"U32","shape":[1,2],"data_offsets":[0,8]},`+
		`"a.scales":{"dtype":"F16","shape":[1],"data_offsets":[8,10]}}`), int64(4))
	f.Add([]byte(`{"a":{"dtype":"U32","shape":[-1,1e300],"data_offsets":[0,1e300]}}`), int64(0))
	f.Fuzz(func(t *testing.T, text []byte, bits int64) {
		w := newWeights()
		data, err := w.parse(bytes.NewReader(text))
		if n := w.Parameters(Quantization{Bits: count(bits)}); err == nil && (n < 0 || data < 0 || w.Bytes < 0) {
			t.Fatalf("%d parameters, %d bytes", n, data)
		}
		_ = w.Widest()
	})
}
