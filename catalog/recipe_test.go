package catalog

import (
	"fmt"
	"maps"
)

// recipe is a model of real tensors, as far as an engine would load it, whose numbers are all zero.
type recipe struct {
	arch                         string
	layers, width, heads, shared int // shared: of the heads, for keys and values
	head                         int // the width of one
	feedForward                  int
	experts, used, expert        int
	kind                         ggmlKind
	tied, norms, postNorms       bool
	ungated, fused               bool // fused: gate and up are one matrix
	meta                         map[string]any
}

// vocabularySize is that of all recipes.
const vocabularySize = 2000

// start is the file without its layers.
func (r recipe) start() file {
	tokens := make([]string, vocabularySize)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("t%d", i)
	}
	f := file{meta: map[string]any{
		"general.architecture": r.arch, "general.name": r.arch, "general.file_type": uint32(1),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": []string{"t 1"},
	}}
	for key, n := range map[string]int{
		"context_length": 131072, "embedding_length": r.width, "block_count": r.layers, "feed_forward_length": r.feedForward,
		"attention.head_count": r.heads, "attention.head_count_kv": r.shared, "attention.key_length": r.head, "attention.value_length": r.head,
		"expert_count": r.experts, "expert_used_count": r.used, "expert_feed_forward_length": r.expert,
	} {
		if n > 0 {
			f.meta[r.arch+"."+key] = uint32(n)
		}
	}
	maps.Copy(f.meta, r.meta)
	f.add("token_embd", r.kind, r.width, vocabularySize)
	f.add("output_norm", kindF32, r.width)
	if !r.tied {
		f.add("output", r.kind, r.width, vocabularySize)
	}
	return f
}

func (f *file) add(name string, kind ggmlKind, dimensions ...int) {
	f.more = append(f.more, tensor{name + ".weight", kind, dimensions})
}

// transformer has layers of attention and feed-forward.
func (r recipe) transformer() file {
	f := r.start()
	for i := range r.layers {
		b := fmt.Sprintf("blk.%d.", i)
		f.add(b+"attn_norm", kindF32, r.width)
		f.add(b+"attn_q", r.kind, r.width, r.heads*r.head)
		f.add(b+"attn_k", r.kind, r.width, r.shared*r.head)
		f.add(b+"attn_v", r.kind, r.width, r.shared*r.head)
		f.add(b+"attn_output", r.kind, r.heads*r.head, r.width)
		if r.norms {
			f.add(b+"attn_q_norm", kindF32, r.head)
			f.add(b+"attn_k_norm", kindF32, r.head)
		}
		if r.postNorms {
			f.add(b+"post_attention_norm", kindF32, r.width)
			f.add(b+"post_ffw_norm", kindF32, r.width)
		}
		r.addFeedForward(&f, b)
	}
	return f
}

// positions is a transformer that knows so many places by heart.
func (r recipe) positions(n int) file {
	f := r.transformer()
	f.add("position_embd", kindF32, r.width, n)
	return f
}

func (r recipe) addFeedForward(f *file, b string) {
	f.add(b+"ffn_norm", kindF32, r.width)
	if r.experts > 0 {
		f.add(b+"ffn_gate_inp", kindF32, r.width, r.experts)
		f.add(b+"ffn_gate_exps", r.kind, r.width, r.expert, r.experts)
		f.add(b+"ffn_down_exps", r.kind, r.expert, r.width, r.experts)
		f.add(b+"ffn_up_exps", r.kind, r.width, r.expert, r.experts)
		return
	}
	f.add(b+"ffn_down", r.kind, r.feedForward, r.width)
	if r.fused {
		f.add(b+"ffn_up", r.kind, r.width, 2*r.feedForward)
		return
	}
	f.add(b+"ffn_up", r.kind, r.width, r.feedForward)
	if !r.ungated {
		f.add(b+"ffn_gate", r.kind, r.width, r.feedForward)
	}
}

// hybrid has short convolutions in most of its layers, and attention in the rest.
func (r recipe) hybrid(shared []uint32) file {
	f := r.start()
	f.meta[r.arch+".attention.head_count_kv"] = shared
	for i, n := range shared {
		b := fmt.Sprintf("blk.%d.", i)
		f.add(b+"attn_norm", kindF32, r.width)
		r.addFeedForward(&f, b)
		if n == 0 {
			f.add(b+"shortconv.conv", kindF32, 3, r.width)
			f.add(b+"shortconv.in_proj", r.kind, r.width, 3*r.width)
			f.add(b+"shortconv.out_proj", r.kind, r.width, r.width)
			continue
		}
		f.add(b+"attn_q", r.kind, r.width, r.width)
		f.add(b+"attn_k", r.kind, r.width, int(n)*r.head)
		f.add(b+"attn_v", r.kind, r.width, int(n)*r.head)
		f.add(b+"attn_output", r.kind, r.width, r.width)
	}
	return f
}

// recurrent has a state of one size in each layer, and no attention.
func (r recipe) recurrent(inner, state, rank int) file {
	f := r.start()
	for key, n := range map[string]int{"conv_kernel": 4, "inner_size": inner, "state_size": state, "time_step_rank": rank} {
		f.meta[r.arch+".ssm."+key] = uint32(n)
	}
	for i := range r.layers {
		b := fmt.Sprintf("blk.%d.", i)
		f.add(b+"attn_norm", kindF32, r.width)
		f.add(b+"ssm_in", r.kind, r.width, 2*inner)
		f.add(b+"ssm_conv1d", kindF32, 4, inner)
		f.add(b+"ssm_x", r.kind, inner, rank+2*state)
		f.add(b+"ssm_dt", r.kind, rank, inner)
		f.more = append(f.more, tensor{b + "ssm_a", kindF32, []int{state, inner}}, tensor{b + "ssm_d", kindF32, []int{inner}})
		f.add(b+"ssm_out", r.kind, inner, r.width)
	}
	return f
}

// latent keeps what keys and values are computed from, of 512 and 64 numbers.
func (r recipe) latent(queryRank int) file {
	const (
		rank, turned = 512, 64
		key, value   = 128, 128
	)
	f := r.start()
	for name, n := range map[string]int{
		"attention.head_count_kv": 1, "attention.key_length": rank + turned, "attention.value_length": rank,
		"attention.key_length_mla": key + turned, "attention.value_length_mla": value, "attention.kv_lora_rank": rank,
		"attention.q_lora_rank": queryRank,
	} {
		f.meta[r.arch+"."+name] = uint32(n)
	}
	for i := range r.layers {
		b := fmt.Sprintf("blk.%d.", i)
		f.add(b+"attn_norm", kindF32, r.width)
		f.add(b+"attn_q_a", r.kind, r.width, queryRank)
		f.add(b+"attn_q_b", r.kind, queryRank, r.heads*(key+turned))
		f.add(b+"attn_kv_a_mqa", r.kind, r.width, rank+turned)
		f.add(b+"attn_k_b", r.kind, key, rank, r.heads)
		f.add(b+"attn_v_b", r.kind, rank, value, r.heads)
		f.add(b+"attn_output", r.kind, r.heads*value, r.width)
		if i == 0 {
			first := r
			first.experts = 0
			first.addFeedForward(&f, b)
			continue
		}
		r.addFeedForward(&f, b)
		f.add(b+"ffn_gate_shexp", r.kind, r.width, 2*r.expert)
		f.add(b+"ffn_down_shexp", r.kind, 2*r.expert, r.width)
		f.add(b+"ffn_up_shexp", r.kind, r.width, 2*r.expert)
	}
	return f
}
