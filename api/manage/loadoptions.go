package manage

import (
	"fmt"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

const (
	// maxLoadNumber bounds the numbers of a load, so that none overflows before it reaches an engine.
	maxLoadNumber = 1 << 30
	// maxParallel is the most requests that a load may ask an instance to answer at a time.
	maxParallel = 1024
	// maxInstanceID is the length of the longest identifier, in bytes.
	maxInstanceID = 128
)

// loadOptions reads the fields of a load that say how the model is loaded.
func loadOptions(body *jsonbody.Body) (o node.LoadOptions, _ *translate.Error) {
	for _, field := range []struct {
		name string
		to   *int
		most int
	}{
		{"context_length", &o.ContextLength, maxLoadNumber},
		{"eval_batch_size", &o.BatchSize, maxLoadNumber},
		{"num_experts", &o.Experts, maxLoadNumber},
		{"parallel", &o.Parallel, maxParallel},
	} {
		n, given, bad := body.Int(field.name)
		if bad != nil {
			return o, bad
		}
		if given && (n < 1 || n > field.most) {
			return o, translate.Invalid("invalid_value", field.name, fmt.Sprintf(`"%s" must be from 1 to %d, and no more than the model can have.`, field.name, field.most))
		}
		*field.to = n
	}
	for _, field := range []struct {
		name string
		to   *supervisor.Toggle
	}{
		{"flash_attention", &o.FlashAttention},
		{"offload_kv_cache_to_gpu", &o.OffloadKV},
	} {
		on, bad := body.Bool(field.name)
		if bad != nil {
			return o, bad
		}
		if jsonbody.IsGiven(body.Value(field.name)) {
			*field.to = supervisor.ToggleOf(on)
		}
	}
	pinned, bad := body.Bool("pinned")
	if bad != nil {
		return o, bad
	}
	if jsonbody.IsGiven(body.Value("pinned")) {
		o.Pinned = &pinned
	}
	if o.TTL, bad = text.TimeToLive(body); bad != nil {
		return o, bad
	}
	o.ID, bad = instanceID(body)
	return o, bad
}

// instanceID reads the field identifier, the id of a new instance.
func instanceID(body *jsonbody.Body) (string, *translate.Error) {
	id, bad := body.String("identifier")
	if bad != nil || !jsonbody.IsGiven(body.Value("identifier")) {
		return "", bad
	}
	if id == "" || len(id) > maxInstanceID || strings.ContainsFunc(id, isNotOfID) {
		return "", translate.Invalid("invalid_value", "identifier", fmt.Sprintf(`"identifier" must have 1 to %d characters: letters and digits of English, and - _ . : / + @.`, maxInstanceID))
	}
	return id, nil
}

func isNotOfID(r rune) bool {
	isWord := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !isWord && !strings.ContainsRune("-_.:/+@", r)
}
