package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// mlxConfig is the relevant part of an MLX model's config.json. In multimodal models the language model has its own part.
type mlxConfig struct {
	ModelType string `json:"model_type"`
	mlxLimits
	Text     *mlxLimits      `json:"text_config"`
	Language *mlxLimits      `json:"language_config"`
	LLM      *mlxLimits      `json:"llm_config"`
	Vision   json.RawMessage `json:"vision_config"`

	Quantization       *mlxQuantization `json:"quantization"`
	QuantizationConfig *mlxQuantization `json:"quantization_config"`
}

type mlxLimits struct {
	MaxPositions   count `json:"max_position_embeddings"`
	Positions      count `json:"n_positions"`
	Context        count `json:"n_ctx"`
	MaxSeqLen      count `json:"max_seq_len"`
	MaxSequence    count `json:"max_sequence_length"`
	SeqLength      count `json:"seq_length"`
	Experts        count `json:"num_experts"`
	LocalExperts   count `json:"num_local_experts"`
	RoutedExperts  count `json:"n_routed_experts"`
	ExpertsUsed    count `json:"num_experts_per_tok"`
	ExpertsUsedToo count `json:"top_k_experts"`
}

type mlxQuantization struct {
	Bits count  `json:"bits"`
	Mode string `json:"mode"`
}

// count is a positive number; any other value becomes 0.
type count int64

// UnmarshalJSON never fails.
func (c *count) UnmarshalJSON(text []byte) error {
	var n float64
	if json.Unmarshal(text, &n) == nil && n > 0 && n <= math.MaxInt32 {
		*c = count(n)
	}
	return nil
}

// parts returns the parts of the configuration that may contain limits, in order of precedence.
func (c *mlxConfig) parts() []mlxLimits {
	all := []mlxLimits{c.mlxLimits}
	for _, p := range []*mlxLimits{c.Text, c.Language, c.LLM} {
		if p != nil {
			all = append(all, *p)
		}
	}
	return all
}

func (c *mlxConfig) contextLength() int {
	for _, l := range c.parts() {
		if n := cmp.Or(l.MaxPositions, l.Positions, l.Context, l.MaxSeqLen, l.MaxSequence, l.SeqLength); n > 0 {
			return int(n)
		}
	}
	return 0
}

func (c *mlxConfig) experts() (all, used int) {
	for _, l := range c.parts() {
		if n := cmp.Or(l.Experts, l.LocalExperts, l.RoutedExperts); n > 1 {
			return int(n), int(cmp.Or(l.ExpertsUsed, l.ExpertsUsedToo))
		}
	}
	return 0, 0
}

func (c *mlxConfig) quantization() mlxQuantization {
	switch {
	case c.Quantization != nil:
		return *c.Quantization
	case c.QuantizationConfig != nil:
		return *c.QuantizationConfig
	default:
		return mlxQuantization{}
	}
}

// name returns the common name of a quantization, such as "4bit", or "".
func (q mlxQuantization) name() string {
	switch {
	case q.Mode != "" && q.Mode != "affine":
		return q.Mode
	case q.Bits > 0:
		return fmt.Sprintf("%dbit", q.Bits)
	default:
		return ""
	}
}
