package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// openAIList is the answer to GET /v1/models, with what some servers add.
type openAIList struct {
	Data []struct {
		ID      string `json:"id"`
		Created number `json:"created"`
		OwnedBy string `json:"owned_by"`
		Context number `json:"max_model_len"` // vLLM, SGLang
		Meta    struct {
			Context  number `json:"n_ctx"` // llama-server
			Trained  number `json:"n_ctx_train"`
			Size     number `json:"size"`
			Elements number `json:"n_params"`
		} `json:"meta"`
	} `json:"data"`
}

const mostModels = 2000

// Discover asks the server what it is and which models it has. The error says why it can't be used.
func (s *Server) Discover(ctx context.Context) (Found, error) {
	kind := s.config.Kind
	var err error
	if kind == "" {
		if kind, err = s.detect(ctx); err != nil {
			return Found{}, err
		}
	}
	s.kind.Store(kind)
	found := Found{Kind: kind}
	var id string
	if found.Version, id = s.version(ctx, kind); id != "" && id == s.self {
		return Found{}, errors.New("it is this server itself: delete the remote")
	}
	var models []Model
	switch kind {
	case KindLmcaddy, KindLMStudio:
		models, err = s.native(ctx, kind)
	case KindOllama:
		models, err = s.ollama(ctx)
	default:
		models, err = s.openAI(ctx, kind)
	}
	if err != nil {
		return Found{}, err
	}
	found.Version = printable(found.Version)
	seen := map[string]bool{}
	for i := range models {
		m := &models[i]
		s.config.describe(m)
		if id != "" {
			m.Via = append([]string{id}, m.Via...)
		}
		if s.config.takes(m) && !seen[m.Key] && !slices.Contains(m.Via, s.self) {
			seen[m.Key] = true
			found.Models = append(found.Models, *m)
		}
	}
	if len(found.Models) > mostModels {
		return Found{}, fmt.Errorf("it has %d models, more than %d: choose some of them with the option models", len(found.Models),
			mostModels)
	}
	slices.SortFunc(found.Models, func(a, b Model) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

func (s *Server) detect(ctx context.Context) (string, error) {
	var native resource.Models
	err := s.ask(ctx, "/api/v1/models", nil, &native)
	var status *statusError
	if err != nil && !errors.As(err, &status) && !errors.Is(err, errNotJSON) {
		return "", err // it can't be reached
	}
	if err == nil && native.Models != nil {
		var health struct {
			Status string `json:"status"`
		}
		if err := s.ask(ctx, "/api/v1/health", nil, &health); err == nil && health.Status != "" ||
			errors.As(err, &status) && status.status == http.StatusServiceUnavailable {
			return KindLmcaddy, nil
		}
		return KindLMStudio, nil // it has status 200 for what it doesn't know
	}
	var list openAIList
	if err := s.ask(ctx, "/v1/models", nil, &list); err != nil {
		return "", err
	}
	for _, m := range list.Data {
		switch m.OwnedBy {
		case "vllm":
			return KindVLLM, nil
		case "sglang":
			return KindSGLang, nil
		case "llamacpp":
			return KindLlamaServer, nil
		}
	}
	var version struct {
		Version string `json:"version"`
	}
	if err := s.ask(ctx, "/api/version", nil, &version); err == nil && version.Version != "" {
		return KindOllama, nil
	}
	return KindOpenAI, nil
}

// version returns the version of the server, and its id if it is one like this; empty: it doesn't tell.
func (s *Server) version(ctx context.Context, kind string) (version, id string) {
	path := map[string]string{
		KindLmcaddy: "/api/v1/settings", KindVLLM: "/version", KindOllama: "/api/version",
		KindLlamaServer: "/props",
	}[kind]
	if path == "" {
		return "", ""
	}
	var said struct {
		Version string `json:"version"`
		ID      string `json:"id"`
		Build   string `json:"build_info"`
	}
	if s.ask(ctx, path, nil, &said) != nil {
		return "", ""
	}
	if kind != KindLmcaddy {
		said.ID = ""
	}
	return cmp.Or(said.Version, said.Build), said.ID
}

func (s *Server) openAI(ctx context.Context, kind string) ([]Model, error) {
	var list openAIList
	if err := s.ask(ctx, "/v1/models", nil, &list); err != nil {
		return nil, err
	}
	var props struct {
		Slots      int `json:"total_slots"`
		Modalities struct {
			Vision bool `json:"vision"`
			Audio  bool `json:"audio"`
		} `json:"modalities"`
		Caps struct {
			Tools bool `json:"supports_tools"`
		} `json:"chat_template_caps"`
	}
	if kind == KindLlamaServer {
		_ = s.ask(ctx, "/props", nil, &props) // a router has none
	}
	models := make([]Model, 0, len(list.Data))
	for _, listed := range list.Data {
		m := Model{ID: listed.ID, Loaded: true, Context: cmp.Or(listed.Context.tokens(), listed.Meta.Context.tokens()), Slots: props.Slots}
		m.MaxContextLength = cmp.Or(listed.Meta.Trained.tokens(), m.Context)
		m.SizeBytes, m.Parameters = int64(listed.Meta.Size), int64(listed.Meta.Elements)
		m.ToolUse, m.Vision, m.Audio = kind != KindLlamaServer || props.Caps.Tools, props.Modalities.Vision, props.Modalities.Audio
		if listed.Created > 0 {
			m.Changed = time.Unix(int64(listed.Created), 0)
		}
		models = append(models, m)
	}
	return models, nil
}

func (s *Server) native(ctx context.Context, kind string) ([]Model, error) {
	var list resource.Models
	if err := s.ask(ctx, "/api/v1/models", nil, &list); err != nil {
		return nil, err
	}
	if list.Models == nil {
		return nil, errors.New("it has no GET /api/v1/models: correct the option kind")
	}
	models := make([]Model, 0, len(list.Models))
	for _, listed := range list.Models {
		m := Model{ID: listed.Key, Loaded: len(listed.Instances) > 0, Via: listed.Via}
		m.Publisher, m.DisplayName, m.Architecture = listed.Publisher, listed.DisplayName, listed.Architecture
		m.SizeBytes, m.MaxContextLength = max(0, listed.SizeBytes), max(0, listed.MaxContextLength)
		if m.Type = catalog.TypeLLM; listed.Type == string(catalog.TypeEmbedding) {
			m.Type = catalog.TypeEmbedding
		}
		if q := listed.Quantization; q != nil {
			m.Quantization = catalog.Quantization{Name: valueOf(q.Name), BitsPerWeight: valueOf(q.Bits)}
		}
		m.SizeLabel, m.Format = valueOf(listed.Params), catalog.Format(listed.Format)
		if c := listed.Capabilities; c != nil {
			m.Vision, m.Audio, m.ToolUse = c.Vision, c.Audio, c.ToolUse
			if c.Reasoning != nil {
				m.Reasoning.Options, m.Reasoning.Default = c.Reasoning.Options, valueOf(c.Reasoning.Default)
			}
		}
		for _, in := range listed.Instances {
			m.Instances = append(m.Instances, in.ID)
			m.Context = max(m.Context, in.Config.ContextLength)
		}
		m.Context = cmp.Or(m.Context, min(max(0, listed.ContextLength), maxContext))
		if kind == KindLmcaddy && m.Type == catalog.TypeEmbedding {
			var details struct {
				Reranker bool `json:"reranker"`
			}
			err := s.ask(ctx, "/api/v1/models/"+(&url.URL{Path: listed.Key}).EscapedPath(), nil, &details)
			m.Reranker = err == nil && details.Reranker
		}
		models = append(models, m)
	}
	if s.config.Peer != "" {
		if err := s.addLoaded(ctx, models); err != nil {
			return nil, err
		}
	}
	return models, nil
}

func (s *Server) ollama(ctx context.Context) ([]Model, error) {
	var list struct {
		Models []struct {
			Name    string    `json:"name"`
			Size    int64     `json:"size"`
			Changed time.Time `json:"modified_at"`
			Details struct {
				Format string `json:"format"`
				Family string `json:"family"`
				Params string `json:"parameter_size"`
				Quant  string `json:"quantization_level"`
			} `json:"details"`
		} `json:"models"`
	}
	var running struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	if err := s.ask(ctx, "/api/tags", nil, &list); err != nil {
		return nil, err
	}
	_ = s.ask(ctx, "/api/ps", nil, &running)
	models := make([]Model, 0, len(list.Models))
	for _, listed := range list.Models {
		m := Model{ID: strings.TrimSuffix(listed.Name, ":latest")} // which means the same
		m.SizeBytes, m.Changed = max(0, listed.Size), listed.Changed
		m.Architecture, m.SizeLabel = listed.Details.Family, listed.Details.Params
		m.Quantization.Name, m.Format = listed.Details.Quant, catalog.Format(listed.Details.Format)
		for _, in := range running.Models {
			if in.Name == listed.Name {
				m.Loaded, m.Context = true, in.Context
			}
		}
		s.showOllama(ctx, &m)
		models = append(models, m)
	}
	return models, nil
}

func (s *Server) showOllama(ctx context.Context, m *Model) {
	var said struct {
		Capabilities []string       `json:"capabilities"`
		Info         map[string]any `json:"model_info"`
	}
	if s.ask(ctx, "/api/show", map[string]string{"model": m.ID}, &said) != nil {
		return
	}
	has := func(word string) bool { return slices.Contains(said.Capabilities, word) }
	m.Vision, m.Audio, m.ToolUse = has("vision"), has("audio"), has("tools")
	if m.Type = catalog.TypeLLM; has("embedding") && !has("completion") {
		m.Type = catalog.TypeEmbedding
	}
	for name, value := range said.Info {
		if n, ok := value.(float64); ok && strings.HasSuffix(name, ".context_length") && n > 0 && n < 1<<30 {
			m.MaxContextLength = int(n)
		}
	}
}

// Load has the server load a model, and returns its id of the instance.
func (s *Server) Load(ctx context.Context, m *Model, contextLength int) (string, error) {
	body := map[string]any{"model": m.ID}
	if contextLength > 0 {
		body["context_length"] = contextLength
	}
	var said resource.Loaded
	err := s.ask(ctx, "/api/v1/models/load", body, &said)
	return said.Instance, err
}

// Unload has the server unload an instance, by its own id.
func (s *Server) Unload(ctx context.Context, instance string) error {
	return s.ask(ctx, "/api/v1/models/unload", map[string]string{"instance_id": instance}, nil)
}

// Pin has another node of the cluster pin an instance, or not any more, by its own id.
func (s *Server) Pin(ctx context.Context, instance string, pinned bool) error {
	return s.ask(ctx, "/api/v1/models/pin", map[string]any{"instance_id": instance, "pinned": pinned}, nil)
}

// Manages reports whether a kind of server loads and unloads models on demand.
func Manages(kind string) bool { return kind == KindLmcaddy || kind == KindLMStudio }

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
