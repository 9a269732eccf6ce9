package resource

// ModelDetails is the response to GET /api/v1/models/{key}, which is beyond the specification: the model as it is listed, and more.
type ModelDetails struct {
	Model
	Parameters   *int64        `json:"parameters"`
	Experts      *Experts      `json:"experts,omitempty"` // of a mixture of experts
	Vocabulary   *int          `json:"vocabulary_size,omitempty"`
	Embeddings   bool          `json:"embeddings"` // it makes embeddings
	Reranker     bool          `json:"reranker"`   // it ranks documents
	Files        []ModelFile   `json:"files"`
	Companions   []Companion   `json:"companions,omitempty"` // files beside it that aren't loaded with it, unless a load asks for one
	ChatTemplate *string       `json:"chat_template"`
	License      *License      `json:"license"`
	Author       *string       `json:"author"`
	QuantizedBy  *string       `json:"quantized_by"`
	Source       *string       `json:"source_url"`     // where it was downloaded, or else its publisher's page
	BaseModel    *string       `json:"base_model_url"` // what it was made from
	Revision     *string       `json:"revision"`       // that was downloaded
	Engine       string        `json:"engine"`
	Settings     ModelSettings `json:"settings"`
	Load         *LoadEstimate `json:"load"` // what a load now would take and do; null: none is possible
	LoadError    string        `json:"load_error,omitempty"`
}

// Experts is the number of a model's experts, and of those that it uses for each token.
type Experts struct {
	Total int `json:"total"`
	Used  int `json:"used"`
}

// ModelFile is a file of a model.
type ModelFile struct {
	Path      string `json:"path"` // relative to the models folder that it is in, if any
	SizeBytes int64  `json:"size_bytes"`
	Role      string `json:"role"` // "model" or "projector"
}

// Companions is the response to GET /api/v1/models/companions, which is beyond the specification.
type Companions struct {
	Companions []Companion `json:"companions"`
}

// Companion is a file that belongs to models and is none itself, such as a projector or a drafter.
type Companion struct {
	Key       string   `json:"key"` // by which a request names a drafter
	Role      string   `json:"role"`
	Path      string   `json:"path"` // relative to the models folder that it is in, if any
	SizeBytes int64    `json:"size_bytes"`
	Models    []string `json:"models"` // the keys of those that it may belong to
}

// License is what a model's file says of its license.
type License struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// ModelSettings are the settings in force for a model: its own, and the server's where it has none.
type ModelSettings struct {
	Configured    bool     `json:"configured"`     // it has settings of its own
	ContextLength *int     `json:"context_length"` // null: chosen by memory
	Parallel      *int     `json:"parallel"`       // null: chosen by memory
	TTL           float64  `json:"ttl_seconds"`    // of the model when a request loads it; 0: it stays loaded
	Draft         *string  `json:"draft_model"`
	Preload       bool     `json:"preload"`
	Pinned        bool     `json:"pinned"`
	Warm          bool     `json:"warm"`           // states of its conversations are saved
	Args          []string `json:"args,omitempty"` // of its engine; for administrators only
}
