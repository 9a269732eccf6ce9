package randommodel

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
)

// WriteProjector makes a projector for audio in a file, of the kind that Ultravox has. A recording becomes one token of a model of some width.
func WriteProjector(path string, width int) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	const inner, bands, frames, hidden = 4, 80, 1500, 4 // of the encoder; frames are half a minute
	const architecture, audio = "clip", "clip.audio."
	fields := []field{
		text("general.architecture", architecture), text("general.type", "mmproj"), text("clip.projector_type", "ultravox"),
		{"clip.has_audio_encoder", []any{uint32(7), true}},
		{"clip.use_gelu", []any{uint32(7), true}},
		number(audio+"embedding_length", inner), number(audio+"feed_forward_length", inner), number(audio+"block_count", 1),
		number(audio+"attention.head_count", 1), fraction(audio+"attention.layer_norm_epsilon", 1e-5), number(audio+"num_mel_bins", bands),
		number(audio+"projection_dim", width), number(audio+"projector.stack_factor", frames),
	}
	random := func(name string, kind Type, dims ...int) tensor {
		return tensor{name, dims, kind, fill{amplitude: 0.1}}
	}
	tensors := []tensor{
		random("a.conv1d.1.weight", F16, 3, bands, inner), random("a.conv1d.1.bias", f32, 1, inner),
		random("a.conv1d.2.weight", F16, 3, inner, inner), random("a.conv1d.2.bias", f32, 1, inner),
		random("a.position_embd.weight", f32, inner, frames),
		norm("a.post_ln", inner), random("a.post_ln.bias", f32, inner),
		random("mm.a.mlp.1.weight", F16, inner*frames, hidden), random("mm.a.mlp.2.weight", F16, hidden/2, width),
		norm("mm.a.norm_pre", inner*frames), norm("mm.a.norm_mid", hidden/2),
	}
	for _, name := range []string{"ln1", "ln2"} {
		tensors = append(tensors, norm("a.blk.0."+name, inner), random("a.blk.0."+name+".bias", f32, inner))
	}
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"} {
		tensors = append(tensors, random("a.blk.0."+name+".weight", F16, inner, inner))
		if name != "attn_k" { // the engine refuses one
			tensors = append(tensors, random("a.blk.0."+name+".bias", f32, inner))
		}
	}
	w := &writer{out: bufio.NewWriter(file)}
	w.put([]byte("GGUF"), uint32(3), uint64(len(tensors)), uint64(len(fields)))
	w.body(fields, tensors, tokenizer{}, rand.NewChaCha8([32]byte{}))
	return errors.Join(w.err, w.out.Flush(), file.Close())
}
