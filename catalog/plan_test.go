package catalog

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestEstimate_IsRough where a header's figures are missing, or beyond belief, and never small, negative or a panic.
func TestEstimate_IsRough(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]map[string]any{
		"many heads":      {"llama.attention.head_count_kv": uint32(1 << 30)},
		"heads of layers": {"llama.attention.head_count_kv": []uint32{2, 1 << 30}},
		"wide keys":       {"llama.attention.key_length": uint32(1 << 31)},
		"wide embedding":  {"llama.embedding_length": uint64(1 << 60)},
		"wide window":     {"llama.attention.sliding_window": uint32(1 << 31)},
		"a large state":   {"llama.ssm.state_size": uint32(1 << 31), "llama.ssm.inner_size": uint32(1 << 31)},
		"no layers":       {"llama.block_count": nil, "general.architecture": "unheard-of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := llama("Tiny", meta)
			if name == "no layers" {
				f.tensors = map[string]int{"x": 64}
			}
			m := Model{Path: f.sparse(t)}
			for _, s := range []Shape{{}, {ContextLength: 4096, Parallel: 2}, {ContextLength: math.MaxInt, Parallel: math.MaxInt, ExpertsUsed: math.MaxInt}} {
				got, err := Estimate(&m, s)
				if err != nil || !got.Rough {
					t.Fatalf("%+v, %v", got, err)
				}
				if got.Weights <= 0 || got.KVCache <= 0 || got.Compute < 0 || got.Total() < got.KVCache {
					t.Errorf("of %+v: %+v", s, got)
				}
			}
		})
	}
}

// TestEstimate_KnowsPlainAttention even where the parser doesn't know the rest.
func TestEstimate_KnowsPlainAttention(t *testing.T) {
	t.Parallel()
	f := llama("Tiny", map[string]any{"llama.block_count": uint32(3)})
	f.tensors = map[string]int{"token_embd.weight": 64}
	got, err := Estimate(&Model{Path: f.sparse(t)}, Shape{ContextLength: 1000, Parallel: 2})
	if want := int64(3 * 2 * 2 * 8 * 1024 * 2); err != nil || !got.Rough || got.KVCache != want {
		t.Errorf("%+v, %v; want a cache of %d bytes", got, err, want)
	}
}

// TestEstimate_OfCheckpoints: the engine's were of 1.262 MiB with the window, after some 9000 tokens.
func TestEstimate_OfCheckpoints(t *testing.T) {
	t.Parallel()
	window := recipe{
		arch: "gemma3", layers: 6, width: 64, heads: 1, shared: 1, head: 64, feedForward: 64, kind: kindF16, tied: true,
		meta: map[string]any{"gemma3.attention.sliding_window": uint32(1024)},
	}
	for name, tt := range map[string]struct {
		file file
		want float64 // MiB
	}{
		"all is kept":      {llama("Tiny", nil), 0},
		"a sliding window": {window.transformer(), 1.5625},
		"a state":          {recipe{arch: "mamba", layers: 4, width: 256, kind: kindF16, tied: true}.recurrent(512, 16, 64), .1484},
	} {
		got, err := Estimate(&Model{Path: tt.file.sparse(t)}, Shape{ContextLength: 32768, Parallel: 4})
		if err != nil || math.Abs(float64(got.Checkpoint)/mebi-tt.want) > .001 {
			t.Errorf("%s: %.4f MiB, %v; want %.4f", name, float64(got.Checkpoint)/mebi, err, tt.want)
		}
	}
}

// TestEstimate_GrowsWithoutEnd sees that what can't fit is never taken for little.
func TestEstimate_GrowsWithoutEnd(t *testing.T) {
	t.Parallel()
	m := Model{Path: llama("Tiny", nil).sparse(t)}
	const bytesPerToken = 2 * 2 * 8 // keys and values, of 16 bits, 8 numbers wide
	for bits := range 63 {
		got, err := Estimate(&m, Shape{ContextLength: 1 << bits})
		want := bounded(bytesPerToken * math.Ldexp(1, max(8, bits)))
		if err != nil || got.Rough || got.KVCache != want || got.Total() < got.KVCache {
			t.Fatalf("a context of 2^%d: %+v, %v; want %d", bits, got, err, want)
		}
	}
	got, err := Estimate(&m, Shape{ContextLength: math.MaxInt, Parallel: math.MaxInt, MicroBatch: math.MaxInt, BatchSize: math.MaxInt})
	if err != nil || got.KVCache != maxBytes || got.Compute != maxBytes {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Estimate(&m, Shape{ContextLength: -1, Parallel: -1, BatchSize: -1, MicroBatch: -1, ExpertsUsed: -1})
	if want, _ := Estimate(&m, Shape{}); err != nil || got != want {
		t.Errorf("of less than nothing: %+v, %v; want %+v", got, err, want)
	}
}

func TestEstimate_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good, none := llama("Tiny", nil).sparse(t), filepath.Join(t.TempDir(), "none.gguf")
	for name, tt := range map[string]struct {
		model Model
		want  string
	}{
		"known to be broken": {Model{Key: "p/m", Path: good, Err: errors.New("it is empty")}, "estimating the memory of p/m: it is empty"},
		"gone":               {Model{Key: "p/m", Path: none}, "no such file"},
		"cut":                {Model{Key: "p/m", Path: write(t, t.TempDir(), "m.gguf", f32[:500])}, "it is truncated"},
		"no projector":       {Model{Key: "p/m", Path: good, Projector: none}, "estimating the memory of p/m: its projector: "},
		"many layers": {
			Model{Path: write(t, t.TempDir(), "m.gguf", llama("x", map[string]any{"llama.block_count": uint32(1 << 31)}).bytes())},
			errTooManyBlocks.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Estimate(&tt.model, Shape{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != (Memory{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if _, err := Estimate(&Model{Path: none}, Shape{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
}

// projectorFile is a vision projector with a picture of so many pixels a side.
func projectorFile(meta map[string]any) file {
	f := llama("Eyes", map[string]any{
		"general.architecture": "clip", "clip.projector_type": "gemma3", "clip.has_vision_encoder": true,
		"clip.vision.image_size": uint32(448), "clip.vision.patch_size": uint32(14), "clip.vision.embedding_length": uint32(1152),
		"clip.vision.feed_forward_length": uint32(4304), "clip.vision.block_count": uint32(1),
		"clip.vision.projection_dim": uint32(640), "clip.vision.attention.head_count": uint32(16),
	})
	maps.Copy(f.meta, meta)
	f.tensors = map[string]int{"v.blk.0.attn_q.weight": 1 << 20}
	return f
}

func TestEstimate_CountsTheProjector(t *testing.T) {
	t.Parallel()
	m := Model{Path: llama("Tiny", nil).sparse(t)}
	without, err := Estimate(&m, Shape{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		meta map[string]any
		want float64 // MiB, beside the weights
	}{
		"small pictures":    {nil, 30.31 * .75}, // the engine takes a third more than the parser says
		"large pictures":    {map[string]any{"clip.vision.image_size": uint32(896)}, 121.25},
		"no size of a part": {map[string]any{"clip.vision.patch_size": uint32(0)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := m
			m.Projector = projectorFile(tt.meta).sparse(t)
			got, err := Estimate(&m, Shape{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := float64(got.Projector)/mebi - 4 - tt.want; math.Abs(diff) > .15*tt.want {
				t.Errorf("%.2f MiB, want 4 + %.2f", float64(got.Projector)/mebi, tt.want)
			}
			if got.Total()-got.Projector != without.Total() {
				t.Errorf("%+v, without it %+v", got, without)
			}
		})
	}
}

// TestPlans_AreKept for some files, until they change. The proof is a file that was changed behind its size and time.
func TestPlans_AreKept(t *testing.T) {
	t.Parallel()
	var c planCache
	path := write(t, t.TempDir(), "m.gguf", f32)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(what string, want bool) {
		t.Helper()
		if _, err := c.of(path); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	reads("at first", true)
	write(t, filepath.Dir(path), "m.gguf", []byte(strings.Repeat("x", len(f32))))
	touch(t, path, info.ModTime())
	reads("changed behind its size and time", true)
	for range maxPlans {
		if _, err := c.of(write(t, t.TempDir(), "m.gguf", f16)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.entries) != maxPlans {
		t.Errorf("%d plans are kept", len(c.entries))
	}
	reads("after many others", false)
	write(t, filepath.Dir(path), "m.gguf", f32)
	touch(t, path, info.ModTime())
	reads("mended", true)
	write(t, filepath.Dir(path), "m.gguf", []byte(strings.Repeat("x", len(f32))))
	touch(t, path, info.ModTime().Add(time.Second))
	reads("with another time", false)
	write(t, filepath.Dir(path), "m.gguf", f32)
	touch(t, path, info.ModTime())
	reads("mended again", true)
	write(t, filepath.Dir(path), "m.gguf", f32[:500])
	touch(t, path, info.ModTime().Add(time.Second))
	reads("with another size", false)
}

func TestEstimate_MayBeAskedByAll(t *testing.T) {
	t.Parallel()
	m := Model{Path: llama("Tiny", nil).sparse(t)}
	want, err := Estimate(&m, Shape{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got, err := Estimate(&m, Shape{}); err != nil || got != want {
					t.Errorf("%+v, %v; want %+v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzEstimate sees that no file makes an estimate panic, or turn negative.
func FuzzEstimate(f *testing.F) {
	add := func(file file) {
		header, _ := file.header()
		f.Add(header, 4096, 1)
	}
	add(llama("x", nil))
	add(llama("x", map[string]any{"llama.expert_count": uint32(8), "llama.ssm.inner_size": uint32(8), "llama.attention.head_count_kv": []uint32{0, 2}}))
	add(projectorFile(nil))
	f.Fuzz(func(t *testing.T, header []byte, context, slots int) {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, header, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(len(header))+1<<24); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := readPlan(path, info)
		if err != nil {
			return
		}
		m := p.memory(Shape{ContextLength: context, Parallel: slots})
		m.Projector = p.projector()
		if m.Weights < 0 || m.KVCache < 0 || m.Compute < 0 || m.Projector < 0 || m.Checkpoint < 0 || m.Total() < 0 {
			t.Errorf("%+v", m)
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	m := Model{Path: filepath.Join(shipped, "lmcaddy", "tinychat", "tinychat-f16.gguf")}
	for b.Loop() {
		if _, err := Estimate(&m, Shape{ContextLength: 4096}); err != nil {
			b.Fatal(err)
		}
	}
}
