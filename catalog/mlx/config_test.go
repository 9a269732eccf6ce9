package mlx

import (
	"encoding/json"
	"testing"
)

func TestMLXConfig_ContextLength(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config string
		want   int
	}{
		"positions":             {`{"max_position_embeddings":100,"n_ctx":50}`, 100},
		"of the language model": {`{"n_positions":77,"text_config":{"max_position_embeddings":100}}`, 100},
		"an old name":           {`{"seq_length":60,"n_ctx":50}`, 50},
		"another old name":      {`{"seq_length":60}`, 60},
		"stretched":             {`{"max_position_embeddings":100,"rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":80}}`, 320},
		"stretched already":     {`{"max_position_embeddings":320,"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":80}}`, 320},
		"stretched, in a part":  {`{"text_config":{"max_position_embeddings":100,"rope_parameters":{"rope_type":"yarn","factor":2.5,"original_max_position_embeddings":80}}}`, 200},
		"another stretch":       {`{"max_position_embeddings":100,"rope_scaling":{"rope_type":"linear","factor":4,"original_max_position_embeddings":80}}`, 100},
		"an unknown original":   {`{"max_position_embeddings":100,"rope_scaling":{"rope_type":"yarn","factor":4}}`, 100},
		"an absurd stretch":     {`{"max_position_embeddings":100,"rope_scaling":{"rope_type":"yarn","factor":1e300,"original_max_position_embeddings":80}}`, 100},
		"odd values":            {`{"max_position_embeddings":-1,"n_ctx":"x","rope_scaling":7}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Config
			if err := json.Unmarshal([]byte(tt.config), &c); err != nil {
				t.Fatal(err)
			}
			if got := c.ContextLength(); got != tt.want {
				t.Errorf("%d tokens, want %d", got, tt.want)
			}
		})
	}
}

func TestMLXConfig_Quantization(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, want string
	}{
		"affine":              {`{"quantization":{"bits":6,"mode":"affine"}}`, "6bit"},
		"without a mode":      {`{"quantization":{"bits":3},"quantization_config":{"quant_method":"bitnet"}}`, "3bit"},
		"mxfp4":               {`{"quantization":{"bits":4,"mode":"mxfp4"}}`, "mxfp4"},
		"another tool's":      {`{"quantization_config":{"quant_method":"mxfp4"}}`, "mxfp4"},
		"awq":                 {`{"quantization_config":{"quant_method":"awq","bits":4}}`, "4bit"},
		"bitnet":              {`{"quantization_config":{"quant_method":"bitnet"}}`, "bitnet"},
		"compressed":          {`{"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"bits":7}}}`, "4bit"},
		"compressed to nvfp4": {`{"text_config":{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"}}}`, "nvfp4"},
		"none":                {`{}`, ""},
		"odd":                 {`{"quantization":"4bit"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Config
			if err := json.Unmarshal([]byte(tt.config), &c); err != nil {
				t.Fatal(err)
			}
			if got := c.StoredAs().CommonName(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzConfig: an invalid config.json is only an error.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"model_type":"x","text_config":{"max_position_embeddings":1e9},"quantization":{"bits":4}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var config Config
		if json.Unmarshal(text, &config) != nil {
			return
		}
		all, used := config.Experts()
		if config.ContextLength() < 0 || all < 0 || used < 0 {
			t.Fatalf("%+v", config)
		}
		_ = config.StoredAs().CommonName()
	})
}
