package randommodel

import "cmp"

// field is one of the metadata. Its value begins with its type.
type field struct {
	name  string
	value []any
}

func number(name string, n int) field       { return field{name, []any{uint32(4), uint32(n)}} }
func text(name, s string) field             { return field{name, []any{uint32(typeString), s}} }
func fraction(name string, v float64) field { return field{name, []any{uint32(6), float32(v)}} }

// templateField is the name of the field of the chat template.
const templateField = "tokenizer.chat_template"

// fields are what describes the shape.
func (s Shape) fields(tokens int) []field {
	a := s.Architecture + "."
	all := []field{
		text("general.architecture", s.Architecture),
		text("general.name", "Random "+s.Architecture),
		text("general.type", "model"),
		number("general.file_type", map[Type]int{F16: 1, Q8: 7}[s.Type]),
		number(a+"context_length", cmp.Or(s.Context, usualContext)),
		number(a+"embedding_length", s.Width),
		number(a+"block_count", s.Layers+s.Predicting),
		number(a+"feed_forward_length", s.FeedForward),
		number(a+"attention.head_count", s.Heads),
		fraction(a+"attention.layer_norm_rms_epsilon", 1e-5),
		number(a+"vocab_size", tokens),
	}
	if s.Template != "" {
		all = append(all, text(templateField, s.Template))
	}
	if s.Architecture == "mamba" {
		return append(all,
			number(a+"ssm.conv_kernel", convolution),
			number(a+"ssm.inner_size", innerWidths*s.Width),
			number(a+"ssm.state_size", stateSize),
			number(a+"ssm.time_step_rank", timeRank))
	}
	all = append(all,
		fraction(a+"rope.freq_base", 10000),
		number(a+"rope.dimension_count", s.HeadSize),
		number(a+"attention.key_length", s.HeadSize),
		number(a+"attention.value_length", s.HeadSize))
	switch s.Architecture {
	case "gemma3":
		all = append(all, number(a+"attention.sliding_window", s.Window))
	case "glm4moe": // only the layers that predict have experts, as they must
		all = append(all,
			number(a+"leading_dense_block_count", s.Layers), number(a+"nextn_predict_layers", s.Predicting),
			number(a+"expert_shared_count", 0), number(a+"expert_feed_forward_length", s.FeedForward))
	case "lfm2":
		heads := []any{uint32(typeArray), uint32(typeInt32), uint64(s.Layers)}
		for i := range s.Layers {
			heads = append(heads, int32(s.kvHeads(i)))
		}
		return append(all, number(a+"shortconv.l_cache", shortConvolution), field{a + "attention.head_count_kv", heads})
	}
	if s.Experts > 0 {
		all = append(all, number(a+"expert_count", s.Experts), number(a+"expert_used_count", 2))
	}
	return append(all, number(a+"attention.head_count_kv", s.KVHeads))
}
