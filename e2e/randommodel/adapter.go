package randommodel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
)

// rank is that of adapters.
const rank = 8

// WriteAdapter makes a LoRA adapter in a file, which changes most of what a model of a shape says.
func WriteAdapter(path string, s Shape, seed uint64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := &writer{out: bufio.NewWriter(file)}
	fields := []field{
		text("general.architecture", s.Architecture), text("general.type", "adapter"), text("adapter.type", "lora"),
		fraction("adapter.lora.alpha", rank),
	}
	var tensors []tensor
	for i := range s.Layers {
		name := fmt.Sprintf("blk.%d.attn_q.weight.lora_", i)
		tensors = append(tensors, tensor{name + "a", []int{s.Width, rank}, f32, fill{amplitude: 1}},
			tensor{name + "b", []int{rank, s.Heads * s.HeadSize}, f32, fill{amplitude: 1}})
	}
	w.put([]byte("GGUF"), uint32(3), uint64(len(tensors)), uint64(len(fields)))
	w.body(fields, tensors, tokenizer{}, rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))))
	return errors.Join(w.err, w.out.Flush(), file.Close())
}
