package ollama

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Owns reports whether a path below /api/ is of this API, by its first segment.
func Owns(segment string) bool {
	return slices.Contains([]string{
		"tags", "ps", "version", "show", "chat", "generate", "embed", "embeddings", "pull", "push", "copy", "create", "delete", "blobs",
		"me", "signout", "status", "experimental", "user",
	}, segment)
}

// Name is a model's name in the form [host/][namespace/]model[:tag]. Parts that aren't given are empty.
type Name struct{ Host, Namespace, Model, Tag string }

// latest is the tag of a name without one.
const latest = "latest"

// library is the namespace of the models in Ollama's own library.
const library = "library"

// hubHosts are the hosts by which Ollama's users name models of the Hugging Face hub.
var hubHosts = []string{"hf.co", "huggingface.co"}

// libraryHosts are those of Ollama's own registry.
var libraryHosts = []string{"", "registry.ollama.ai", "ollama.com"}

// ParseName splits a name. A scheme before the host is left out.
func ParseName(s string) (n Name) {
	s = strings.TrimSpace(s)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	if at := strings.LastIndexByte(s, ':'); at > strings.LastIndexByte(s, '/') {
		s, n.Tag = s[:at], s[at+1:]
	}
	rest, model, ok := cutLast(s)
	if n.Model = model; !ok {
		return n
	}
	n.Host, n.Namespace, _ = cutLast(rest)
	return n
}

func cutLast(s string) (before, after string, found bool) {
	if at := strings.LastIndexByte(s, '/'); at >= 0 {
		return s[:at], s[at+1:], true
	}
	return "", s, false
}

// IsOfHub reports whether the name is of a model on the Hugging Face hub.
func (n Name) IsOfHub() bool { return slices.Contains(hubHosts, strings.ToLower(n.Host)) }

func (n Name) isOfLibrary() bool { return slices.Contains(libraryHosts, strings.ToLower(n.Host)) }

// IsPlain reports whether the name has no host and no namespace, other than those of Ollama's own library.
func (n Name) IsPlain() bool {
	return n.isOfLibrary() && (n.Namespace == "" || strings.EqualFold(n.Namespace, library))
}

func (n Name) repository() string {
	if n.Namespace == "" || n.IsPlain() {
		return n.Model
	}
	return n.Namespace + "/" + n.Model
}

// quantizedTag matches a tag that ends in a quantization, such as "4b-instruct-q4_K_M" or "Q8_0".
var quantizedTag = regexp.MustCompile(`(?i)^(?:(.+)-)?((?:i?q[0-9][a-z0-9_]*|t?q[12]_0|f16|fp16|bf16|f32|fp32|mxfp4(?:_moe)?))$`)

// Split returns the tag's size or kind, such as "4b", and its quantization. Each may be empty.
func (n Name) Split() (kind, quantization string) {
	if strings.EqualFold(n.Tag, latest) {
		return "", ""
	}
	m := quantizedTag.FindStringSubmatch(n.Tag)
	if m == nil {
		return n.Tag, ""
	}
	kind, quantization = m[1], m[2]
	at := len(kind) - len("UD") // of dynamic quantizations, as in UD-Q4_K_XL
	if at < 0 || !strings.EqualFold(kind[at:], "UD") || at > 0 && kind[at-1] != '-' {
		return kind, quantization
	}
	return strings.TrimSuffix(kind[:at], "-"), kind[at:] + "-" + quantization
}

// Synonyms returns the names by which this server may know a model that a client calls name, the likeliest first. A tag is a
// quantization of a repository, or a part of its name; "latest" means nothing.
func Synonyms(name string) []string {
	names := []string{name}
	n := ParseName(name)
	if n.Model == "" || !n.IsOfHub() && !n.isOfLibrary() {
		return names
	}
	repo := n.repository()
	kind, quantization := n.Split()
	switch {
	case kind == "" && quantization == "":
		names = append(names, repo)
	case kind == "":
		names = append(names, repo+"@"+quantization)
	case quantization == "":
		names = append(names, repo+"@"+kind, repo+"-"+kind)
	default:
		names = append(names, repo+"@"+n.Tag, repo+"-"+kind+"@"+quantization)
	}
	if names[1] == name {
		return names[:1]
	}
	return names
}

// Squashed returns a plain name without what the same model's names differ in: punctuation, case, and the ending that says that
// the model follows instructions. So "gemma3:4b" is like "gemma-3-4b-it". The quantization is left out. It is empty for other names.
func (n Name) Squashed() string {
	if !n.IsPlain() {
		return ""
	}
	kind, _ := n.Split()
	return Squash(n.Model + cmp.Or(kind, defaultSizes[strings.ToLower(n.Model)]))
}

// Squash is Squashed for the bare name of a repository.
func Squash(bare string) string {
	bare = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(bare))
	for _, ending := range []string{"instruct", "it"} {
		bare = strings.TrimSuffix(bare, ending)
	}
	return bare
}

// defaultSizes are what Ollama's library means by names without a tag.
var defaultSizes = map[string]string{
	"qwen3": "8b", "qwen2.5": "7b", "qwen2.5-coder": "7b", "qwen3-coder": "30b", "qwen3-embedding": "4b", "gemma3": "4b",
	"embeddinggemma": "300m", "llama3.1": "8b", "llama3.2": "3b", "llama3.3": "70b", "gpt-oss": "20b", "mistral": "7b-instruct-v0.3",
	"nomic-embed-text": "v1.5",
}

// Listed returns the name under which a model is listed: its key in the form that clients expect, with a tag.
func Listed(key string) string {
	if repo, variant, ok := strings.Cut(key, "@"); ok {
		return repo + ":" + variant
	}
	if n := ParseName(key); n.Tag == "" {
		return key + ":" + latest
	}
	return key
}

// validName matches a name that a client may give a model: at most three parts and a tag.
var validName = regexp.MustCompile(`^(?:[a-z0-9_][a-z0-9_.-]{0,79}/){0,2}[a-z0-9_][a-z0-9_.-]{0,79}(?::[a-z0-9_][a-z0-9_.-]{0,79})?$`)

// Canonical returns the one spelling of a name: in lower case, and without what every name has, the registry and "latest".
func Canonical(name string) string {
	n := ParseName(strings.ToLower(name))
	out := n.Model
	switch {
	case n.IsPlain():
	case n.isOfLibrary():
		out = n.Namespace + "/" + n.Model
	case n.Host != "":
		out = n.Host + "/" + n.Namespace + "/" + n.Model
	}
	if n.Tag != "" && n.Tag != latest {
		out += ":" + n.Tag
	}
	return out
}

// IsValid reports whether a client may give a model a name.
func IsValid(name string) bool { return validName.MatchString(Canonical(name)) }

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
