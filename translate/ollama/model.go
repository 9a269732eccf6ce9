package ollama

import (
	"math"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// The bodies of the endpoints that describe models. Fields follow api/types.go of Ollama's source.
type (
	// Tags is the response to GET /api/tags.
	Tags struct {
		Models []Tag `json:"models"`
	}
	// Tag is a model on disk.
	Tag struct {
		Name         string    `json:"name"`
		Model        string    `json:"model"`
		ModifiedAt   time.Time `json:"modified_at"`
		Size         int64     `json:"size"`
		Digest       string    `json:"digest"`
		Details      Details   `json:"details"`
		Capabilities []string  `json:"capabilities,omitempty"`
	}
	// Details describes a model in few words.
	Details struct {
		ParentModel       string   `json:"parent_model"`
		Format            string   `json:"format"`
		Family            string   `json:"family"`
		Families          []string `json:"families"`
		ParameterSize     string   `json:"parameter_size"`
		QuantizationLevel string   `json:"quantization_level"`
		ContextLength     int      `json:"context_length,omitempty"`
	}
	// Processes is the response to GET /api/ps.
	Processes struct {
		Models []Process `json:"models"`
	}
	// Process is a loaded model.
	Process struct {
		Name          string    `json:"name"`
		Model         string    `json:"model"`
		Size          int64     `json:"size"`
		Digest        string    `json:"digest"`
		Details       Details   `json:"details"`
		ExpiresAt     time.Time `json:"expires_at"`
		SizeVRAM      int64     `json:"size_vram"`
		ContextLength int       `json:"context_length"`
	}
	// Shown is the response to POST /api/show.
	Shown struct {
		License      string         `json:"license,omitempty"`
		Modelfile    string         `json:"modelfile"`
		Parameters   string         `json:"parameters,omitempty"`
		Template     string         `json:"template"`
		System       string         `json:"system,omitempty"`
		Details      Details        `json:"details"`
		ModelInfo    map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
		ModifiedAt   time.Time      `json:"modified_at"`
	}
)

// Version is the version of Ollama whose API this is: clients ask for a least one.
const Version = "0.33.0"

// Forever stands for the time when a model expires that doesn't.
func Forever(now time.Time) time.Time { return now.Add(math.MaxInt64) }

// Progress is a line of the response to POST /api/pull or /api/create.
type Progress struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"`
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// AppendLine appends the line.
func (p Progress) AppendLine(dst []byte) []byte { return append(jsonbody.AppendJSON(dst, p), '\n') }

// Streams returns whether a request is answered in lines, which is the default.
func Streams(body *jsonbody.Body) (bool, *translate.Error) {
	if !jsonbody.IsGiven(body.Value("stream")) {
		return true, nil
	}
	return body.Bool("stream")
}
