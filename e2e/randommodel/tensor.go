package randommodel

import (
	"fmt"
	"math"
	"strings"
)

// tensor is an array of weights. Its first dimension varies fastest.
type tensor struct {
	name string
	dims []int
	kind Type
	fill fill
}

// fill is what the weights are.
type fill struct {
	amplitude float64             // random: from -amplitude to amplitude
	each      func(i int) float64 // not random
	silent    bool                // tokens that the model never says have rows of zeros
}

func ones(int) float64 { return 1 }

// norm is the weights of a normalization, all 1.
func norm(name string, width int) tensor {
	return tensor{name + ".weight", []int{width}, f32, fill{each: ones}}
}

// matrix returns the weights of a layer with the given inputs and outputs. It multiplies the size of values by gain.
func (s Shape) matrix(name string, in, out int, gain float64) tensor {
	return tensor{name + ".weight", []int{in, out}, s.Type, fill{amplitude: gain * math.Sqrt(3/float64(in))}}
}

// The gains of some layers. Queries and keys that are larger than the others make attention pick single tokens, so that an answer depends on
// what is far back in the prompt.
const (
	sharp = 1.5
	plain = 1
)

// tensors are all of a model's weights, given the number of its tokens.
func (s Shape) tensors(tokens int) []tensor {
	embedding := s.matrix("token_embd", s.Width, tokens, plain)
	embedding.fill.silent = true
	if s.Architecture == "gemma3" { // the engine multiplies it by the root of the width; the model would repeat its last token
		embedding.fill.amplitude /= math.Sqrt(float64(s.Width))
	}
	last := "output_norm"
	if s.Architecture == "lfm2" {
		last = "token_embd_norm"
	}
	all := []tensor{embedding, norm(last, s.Width)}
	for i := range s.Layers + s.Predicting {
		layer := s.layer(i)
		for j := range layer {
			layer[j].name = fmt.Sprintf("blk.%d.%s", i, layer[j].name)
		}
		all = append(all, layer...)
	}
	return all
}

func (s Shape) layer(i int) []tensor {
	switch {
	case s.Architecture == "mamba":
		return s.recurrent()
	case s.Architecture == "lfm2" && s.kvHeads(i) == 0:
		return append(s.convolution(), s.feedForward()...)
	case s.Architecture == "lfm2":
		return append(append(s.attention(), s.headNorms()...), s.feedForward()...)
	case s.Architecture == "gemma3":
		all := append(append(s.attention(), s.headNorms()...), s.feedForward()...)
		return append(all, norm("post_attention_norm", s.Width), norm("post_ffw_norm", s.Width))
	case s.Architecture == "glm4moe":
		all := append(s.attention(), s.feedForward()...)
		if i >= s.Layers {
			all = append(append(s.attention(), s.experts()...), tensor{"exp_probs_b.bias", []int{s.Experts}, f32, fill{each: ones}})
		}
		for j, x := range all {
			all[j].name = strings.Replace(x.name, "ffn_norm", "post_attention_norm", 1)
		}
		if i >= s.Layers {
			all = append(all, s.matrix("nextn.eh_proj", 2*s.Width, s.Width, plain),
				norm("nextn.enorm", s.Width), norm("nextn.hnorm", s.Width), norm("nextn.shared_head_norm", s.Width))
		}
		return all
	case s.Experts > 0:
		return append(s.attention(), s.experts()...)
	default:
		return append(s.attention(), s.feedForward()...)
	}
}

// kvHeads is the number of a layer's KV heads: of a hybrid model, every fourth layer is of attention.
func (s Shape) kvHeads(i int) int {
	if s.Architecture == "lfm2" && i%4 != 3 {
		return 0
	}
	return s.KVHeads
}

func (s Shape) attention() []tensor {
	return []tensor{
		norm("attn_norm", s.Width),
		s.matrix("attn_q", s.Width, s.Heads*s.HeadSize, sharp),
		s.matrix("attn_k", s.Width, s.KVHeads*s.HeadSize, sharp),
		s.matrix("attn_v", s.Width, s.KVHeads*s.HeadSize, plain),
		s.matrix("attn_output", s.Heads*s.HeadSize, s.Width, plain),
	}
}

func (s Shape) headNorms() []tensor {
	wide := func(int) float64 { return sharp }
	return []tensor{
		{"attn_q_norm.weight", []int{s.HeadSize}, f32, fill{each: wide}},
		{"attn_k_norm.weight", []int{s.HeadSize}, f32, fill{each: wide}},
	}
}

func (s Shape) feedForward() []tensor {
	return []tensor{
		norm("ffn_norm", s.Width),
		s.matrix("ffn_gate", s.Width, s.FeedForward, plain),
		s.matrix("ffn_up", s.Width, s.FeedForward, plain),
		s.matrix("ffn_down", s.FeedForward, s.Width, plain),
	}
}

func (s Shape) experts() []tensor {
	each := func(name string, in, out int) tensor {
		m := s.matrix(name, in, out, plain)
		m.dims = append(m.dims, s.Experts)
		return m
	}
	router := s.matrix("ffn_gate_inp", s.Width, s.Experts, plain)
	router.kind = f32
	return []tensor{
		norm("ffn_norm", s.Width), router,
		each("ffn_gate_exps", s.Width, s.FeedForward), each("ffn_up_exps", s.Width, s.FeedForward), each("ffn_down_exps", s.FeedForward, s.Width),
	}
}

// shortConvolution is the length of lfm2's convolutions, in tokens.
const shortConvolution = 3

func (s Shape) convolution() []tensor {
	return []tensor{
		norm("attn_norm", s.Width),
		{"shortconv.conv.weight", []int{shortConvolution, s.Width}, f32, fill{amplitude: 1}},
		s.matrix("shortconv.in_proj", s.Width, 3*s.Width, plain),
		s.matrix("shortconv.out_proj", s.Width, s.Width, plain),
	}
}

// The sizes of a recurrent layer, as multiples of the width or as they are.
const (
	innerWidths = 2
	stateSize   = 16
	timeRank    = 16
	convolution = 4
)

func (s Shape) recurrent() []tensor {
	inner := innerWidths * s.Width
	// The softplus of -4.6 is 0.01, so that what a layer remembers lasts for a hundred to thousands of tokens.
	step := func(int) float64 { return -4.6 }
	decay := func(i int) float64 { return -float64(i%stateSize+1) / stateSize }
	return []tensor{
		norm("attn_norm", s.Width),
		s.matrix("ssm_in", s.Width, 2*inner, plain),
		{"ssm_conv1d.weight", []int{convolution, inner}, f32, fill{amplitude: 1}},
		{"ssm_conv1d.bias", []int{inner}, f32, fill{amplitude: 0.1}},
		s.matrix("ssm_x", inner, timeRank+2*stateSize, plain),
		s.matrix("ssm_dt", timeRank, inner, 0.3),
		{"ssm_dt.bias", []int{inner}, f32, fill{each: step}},
		{"ssm_a", []int{stateSize, inner}, f32, fill{each: decay}},
		{"ssm_d", []int{inner}, f32, fill{each: ones}},
		s.matrix("ssm_out", inner, s.Width, plain),
	}
}
