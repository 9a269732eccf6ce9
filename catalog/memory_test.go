package catalog

import (
	"math"
	"path/filepath"
	"testing"
)

const mebi = 1 << 20

// account is what the engine says that it takes, in MiB: llama-server, build 11669, on a processor alone, by its log.
type account struct{ weights, cache, compute float64 }

// checkMemory allows for some MiB more or less. The vocabulary is in our account only, and in the engine's account the last
// layer is the smaller.
func checkMemory(t *testing.T, m Model, s Shape, want account, more float64) {
	t.Helper()
	got, err := Estimate(&m, s)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rough {
		t.Error("it is rough")
	}
	near := func(what string, got int64, want, share, more float64) {
		t.Helper()
		if diff := float64(got)/mebi - want; math.Abs(diff) > want*share+more {
			t.Errorf("%s: %.2f MiB, the engine takes %.2f", what, float64(got)/mebi, want)
		}
	}
	near("weights", got.Weights, want.weights, .02, .1)
	near("cache", got.KVCache, want.cache, .01, .02)
	near("compute", got.Compute, want.compute, .03, more)
	if got.Total() != got.Weights+got.KVCache+got.Compute+got.Projector {
		t.Errorf("the total is %d of %+v", got.Total(), got)
	}
}

func TestEstimate_IsTheEngines(t *testing.T) {
	t.Parallel()
	dense := recipe{arch: "llama", layers: 4, width: 512, heads: 8, shared: 4, head: 64, feedForward: 1536, kind: kindF16}
	embedding := dense
	embedding.arch, embedding.norms = "qwen3", true
	embedding.meta = map[string]any{"qwen3.pooling_type": uint32(3)}
	fused := dense
	fused.arch, fused.fused, fused.postNorms = "glm4", true, true
	tied := dense
	tied.shared, tied.kind, tied.tied = 8, kindQ40, true
	experts := recipe{
		arch: "qwen3moe", layers: 2, width: 512, heads: 8, shared: 4, head: 64, feedForward: 1536, kind: kindQ40,
		experts: 8, used: 4, expert: 256, norms: true,
	}
	window := recipe{
		arch: "gemma3", layers: 6, width: 256, heads: 4, shared: 2, head: 64, feedForward: 1024, kind: kindQ80, tied: true,
		norms: true, postNorms: true, meta: map[string]any{"gemma3.attention.sliding_window": uint32(512)},
	}
	encoder := recipe{
		arch: "bert", layers: 2, width: 256, heads: 4, shared: 4, head: 64, feedForward: 1024, kind: kindF16, tied: true, ungated: true,
		meta: map[string]any{"bert.attention.causal": false, "bert.pooling_type": uint32(1)},
	}
	hybrid := recipe{
		arch: "lfm2", layers: 16, width: 256, heads: 4, head: 64, feedForward: 768, kind: kindF16, tied: true,
		meta: map[string]any{"lfm2.shortconv.l_cache": uint32(3)},
	}
	latent := recipe{
		arch: "deepseek2", layers: 3, width: 512, heads: 8, feedForward: 1024, kind: kindQ80, experts: 8, used: 6, expert: 128,
	}
	small := experts
	small.expert, small.used = 192, 8
	one, long, four := Shape{ContextLength: 4096}, Shape{ContextLength: 16384}, Shape{ContextLength: 4096, Parallel: 4}
	with := func(s Shape, change func(*Shape)) Shape { change(&s); return s }
	for name, tt := range map[string]struct {
		file  file
		cases map[Shape]account
	}{
		"dense": {dense.transformer(), map[Shape]account{
			one: {27.92, 16, 18.02}, long: {27.92, 64, 30.02}, four: {27.92, 64, 18.02},
			{ContextLength: 256}: {27.92, 1, 7.13}, {ContextLength: 1}: {27.92, 1, 7.13},
			with(one, func(s *Shape) { s.NoFlashAttention = true }): {27.92, 16, 79.01},
			with(one, func(s *Shape) { s.MicroBatch = 1024 }):       {27.92, 16, 36.04},
			with(one, func(s *Shape) { s.BatchSize = 128 }):         {27.92, 16, 4.5},
		}},
		"a chat model that embeds": {embedding.transformer(), map[Shape]account{one: {27.93, 16, 18.02}}},
		"gate and up in one":       {fused.transformer(), map[Shape]account{one: {27.94, 16, 18.02}, four: {27.94, 64, 18.02}}},
		"tied": {tied.transformer(), map[Shape]account{
			one: {8.41, 32, 18.02}, long: {8.41, 128, 30.02}, four: {8.41, 128, 18.02},
		}},
		"experts": {experts.transformer(), map[Shape]account{
			one: {5.36, 8, 15.02}, long: {5.36, 32, 27.02}, four: {5.36, 32, 15.02},
			with(one, func(s *Shape) { s.ExpertsUsed = 8 }): {5.36, 8, 21.02},
		}},
		"small experts": {small.transformer(), map[Shape]account{one: {4.51, 8, 26.02}}},
		"a sliding window": {window.transformer(), map[Shape]account{
			one: {6.52, 4.5, 13.53}, long: {6.52, 10.5, 25.53}, four: {6.52, 18, 13.53},
			with(long, func(s *Shape) { s.Parallel, s.MicroBatch = 2, 1024 }): {6.52, 23.5, 52.05},
		}},
		"encoder": {encoder.positions(2048), map[Shape]account{
			{ContextLength: 512}:                                     {6.01, 0, 5.51},
			{ContextLength: 512, Parallel: 4}:                        {6.01, 0, 5.52},
			{ContextLength: 2048, BatchSize: 2048, MicroBatch: 2048}: {6.01, 0, 28.05},
		}},
		"recurrent": {
			recipe{arch: "mamba", layers: 4, width: 256, kind: kindF16, tied: true}.recurrent(512, 16, 64),
			map[Shape]account{one: {4.79, .15, 7.54}, long: {4.79, .15, 7.54}, four: {4.79, .59, 7.66}},
		},
		"hybrid": {
			hybrid.hybrid([]uint32{0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 2, 0, 2, 0, 2, 0}),
			map[Shape]account{one: {26.29, 12.02, 11.02}, long: {26.29, 48.02, 23.02}, four: {26.29, 48.08, 11.02}},
		},
		"latent": {latent.latent(768), map[Shape]account{
			one: {18.17, 13.5, 30.51}, long: {18.17, 54, 42.51}, four: {18.17, 54, 30.51},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Model{Key: "p/m", Path: tt.file.sparse(t)}
			more := .5
			if name == "recurrent" { // the factor lies between those of several kinds of states
				more = 1
			}
			for shape, want := range tt.cases {
				checkMemory(t, m, shape, want, more)
			}
		})
	}
}

func TestEstimate_OfTheShippedModels(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ one, four account }{
		"tinychat/tinychat-f16.gguf":      {account{3.66, 6, 6.89}, account{3.66, 24, 6.89}},
		"tinymoe/tinymoe-f16.gguf":        {account{.44, 1, 2.89}, account{.44, 4, 2.89}},
		"tinydraft/tinydraft-f16.gguf":    {account{.35, .75, 3.33}, account{.35, 3, 3.33}},
		"tinyvision/tinyvision-q4_0.gguf": {account{1.03, 6, 6.89}, account{1.03, 24, 6.89}},
		"tinyembed/tinyembed-f16.gguf":    {account{.41, 0, 1.39}, account{.41, 0, 1.39}},
		"tinyrerank/tinyrerank-f16.gguf":  {account{.63, 0, 1.82}, account{.63, 0, 1.82}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Model{Path: filepath.Join(shipped, "lmcaddy", filepath.FromSlash(name))}
			checkMemory(t, m, Shape{ContextLength: 2048}, tt.one, 1.5)
			checkMemory(t, m, Shape{ContextLength: 2048, Parallel: 4}, tt.four, 1.5)
		})
	}
}
