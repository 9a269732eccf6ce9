// Package ollama has the endpoints of Ollama's API.
package ollama

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// listTags is GET /api/tags: the models on disk.
func listTags(c *endpoint.Call) error {
	models, err := c.ModelsToList()
	if err != nil {
		return err
	}
	list := ollama.Tags{Models: []ollama.Tag{}}
	for i := range models {
		m := models[i].Model
		if !models[i].IsListed { // deleted, but still loaded
			continue
		}
		tag := ollama.Tag{
			ModifiedAt: m.Changed, Size: m.SizeBytes, Digest: digestOf(m), Details: detailsOf(m, models[i].ContextLength),
			Capabilities: capabilitiesOf(m, nil),
		}
		for _, name := range tagNames(&models[i]) {
			tag.Name, tag.Model = name, name
			list.Models = append(list.Models, tag)
		}
	}
	slices.SortStableFunc(list.Models, func(a, b ollama.Tag) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
	return c.Answer(list)
}

// tagNames are the names under which a model is listed, each of them once: its key and its aliases. What Ollama has pulled has only
// Ollama's names, if an import has made these its aliases: that is how its clients know it.
func tagNames(m *node.ModelState) []string {
	names := slices.DeleteFunc(slices.Clone(m.Aliases), func(a string) bool { return strings.ContainsAny(a, "*?[") })
	if m.Layout != catalog.LayoutOllama || len(names) == 0 {
		names = append([]string{m.Key}, names...)
	}
	listed, seen := []string{}, map[string]bool{}
	for _, name := range names {
		if means := ollama.Canonical(name); !seen[means] {
			seen[means] = true
			listed = append(listed, ollama.Listed(name))
		}
	}
	return listed
}

// listProcesses is GET /api/ps: the loaded models, the one that stays the longest first.
func listProcesses(c *endpoint.Call) error {
	now := time.Now()
	list := ollama.Processes{Models: []ollama.Process{}}
	instances := c.Node.Instances()
	isHere := map[string]bool{} // a model has its own name here, and on its first remote otherwise
	for i := range instances {
		isHere[instances[i].ID] = true
	}
	for i := range instances {
		in := &instances[i]
		m, context := &in.Spec.Model, in.Spec.ContextLength
		isGone := in.Status.IsLoading() || in.Status == schedule.Stopping || in.Spec.Remote != nil && !in.IsLoaded()
		if isGone || !c.Identity.MayUse(m.FullKey()) {
			continue
		}
		name := ollama.Listed(m.Key)
		if in.ID != m.Key && (in.Spec.Remote == nil || isHere[m.Key]) {
			name = in.ID
		}
		isHere[m.Key] = true
		expires := cmp.Or(in.Expires, ollama.Forever(now))
		if in.Expires.IsZero() && in.Spec.TTL > 0 {
			expires = now.Add(in.Spec.TTL)
		}
		list.Models = append(list.Models, ollama.Process{
			Name: name, Model: name, Size: in.Memory, Digest: digestOf(m), Details: detailsOf(m, context), ContextLength: context,
			ExpiresAt: expires, SizeVRAM: outsideCPU(in.Devices()),
		})
	}
	slices.SortStableFunc(list.Models, func(a, b ollama.Process) int { return b.ExpiresAt.Compare(a.ExpiresAt) })
	return c.Answer(list)
}

func outsideCPU(devices []schedule.DeviceMemory) (bytes int64) {
	for _, d := range devices {
		if d.Device != schedule.CPU {
			bytes += d.Bytes
		}
	}
	return bytes
}

// detailsOf describes a model in few words. context is what a request to it gets.
func detailsOf(m *catalog.Model, context int) ollama.Details {
	d := ollama.Details{
		Format: string(m.Format), Family: m.Architecture, Families: []string{}, ParameterSize: m.ParamsString(),
		QuantizationLevel: m.Quantization.Name, ContextLength: context,
	}
	if m.Architecture != "" {
		d.Families = append(d.Families, m.Architecture)
	}
	return d
}

// digestOf is a text that stays the same as long as the model does. Ollama's is that of a manifest, which models here don't have.
func digestOf(m *catalog.Model) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d\n%s", m.FullKey(), m.SizeBytes, m.Changed.Unix(), m.Quantization.Name))
	return hex.EncodeToString(sum[:])
}

// capabilitiesOf are a model's abilities in Ollama's words. metadata is that of its file; nil if that wasn't read.
func capabilitiesOf(m *catalog.Model, metadata map[string]any) []string {
	switch {
	case m.Reranker:
		return []string{}
	case m.Type == catalog.TypeEmbedding:
		return []string{"embedding"}
	}
	all := []string{"completion"}
	fillsGaps := metadata["tokenizer.ggml.fim_pre_token_id"] != nil || metadata["tokenizer.ggml.prefix_token_id"] != nil
	for _, ability := range []struct {
		has  bool
		word string
	}{{m.Vision, "vision"}, {m.Audio, "audio"}, {m.ToolUse, "tools"}, {fillsGaps, "insert"}, {len(m.Reasoning.Options) > 0, "thinking"}} {
		if ability.has {
			all = append(all, ability.word)
		}
	}
	return all
}

func unknownModel(missing *catalog.NotFoundError) *translate.Error {
	e := ollama.NotFound(endpoint.Presentable(missing.Name, endpoint.MaxParam))
	if len(missing.Ambiguous) > 0 {
		e.Message = "model " + endpoint.Quoted(missing.Name) + " not found: the name is ambiguous, it may be " +
			strings.Join(missing.Ambiguous, ", ")
	}
	return e
}

// nameFields are where the name of a model is in a body; "name" as older clients have it.
var nameFields = []string{"model", "name"}

// show is POST /api/show.
func show(c *endpoint.Call) error {
	_, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	target, err := c.Find(name)
	if err != nil {
		return err
	}
	m := &target.Model
	m.Reasoning = c.Node.Engines.Reasoning(m)
	details, err := c.Node.Details(m)
	if err != nil {
		return err
	}
	custom, ok := c.Node.Names.Custom(name)
	context := c.Node.Loads.ContextLength(c.Request.Context(), target)
	if endpoint.StateOf(m.Key, c.Node.Instances()) == endpoint.StateNotLoaded { // the defaults count if the request loads the model
		if chosen, err := strconv.Atoi(string(custom.Defaults["context_length"])); err == nil {
			context = min(chosen, cmp.Or(m.MaxContextLength, chosen))
		}
	}
	shown := ollama.Shown{
		License: licenseText(details.License), Template: details.ChatTemplate, Details: detailsOf(m, context), ModifiedAt: m.Changed,
		ModelInfo: modelInfo(m, details.Metadata, context), Capabilities: capabilitiesOf(m, details.Metadata),
	}
	if ok {
		shown.Details.ParentModel = ollama.Listed(m.Key)
	}
	shown.System, shown.Modelfile = ollama.System(custom.Defaults), ollama.Modelfile(ollama.Listed(m.Key), custom.Defaults)
	parameters := node.Preset{}
	maps.Copy(parameters, custom.Defaults)
	if context > 0 {
		parameters["context_length"] = strconv.AppendInt(nil, int64(context), 10)
	}
	shown.Parameters = ollama.Parameters(parameters)
	return c.Answer(shown)
}

// modelInfo has what a model's file says of it, under the keys of GGUF files. Models in other formats have the most important of them. The
// context is what a request gets: clients that read it here send prompts of that length.
func modelInfo(m *catalog.Model, metadata map[string]any, context int) map[string]any {
	info := map[string]any{}
	for key, value := range metadata {
		if key != "general.name" && !strings.HasPrefix(key, "tokenizer.chat_template") {
			info[key] = value
		}
	}
	for key, value := range map[string]any{
		"general.architecture":    m.Architecture,
		"general.basename":        m.DisplayName,
		"general.parameter_count": m.Parameters,
	} {
		if _, given := info[key]; !given && value != "" && value != int64(0) {
			info[key] = value
		}
	}
	if context = cmp.Or(context, m.MaxContextLength); context > 0 {
		info[cmp.Or(m.Architecture, "general")+".context_length"] = context
	}
	return info
}

func licenseText(l catalog.License) string {
	lines := []string{cmp.Or(l.Name, l.ID)}
	if l.Name != "" && l.ID != "" {
		lines[0] += " (" + l.ID + ")"
	}
	if l.URL != "" {
		lines = append(lines, l.URL)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// Dialect is Ollama's API. Its streams are lines of JSON; white space between them belongs to the next line.
var Dialect = &endpoint.Dialect{
	Name: "ollama", Family: endpoint.FamilyOllama, Errors: ollama.Errors{}, UnknownModel: unknownModel,
	Owns: func(r *http.Request) bool {
		name, ok := strings.CutPrefix(r.URL.Path, "/api/")
		first, _, _ := strings.Cut(name, "/")
		return ok && ollama.Owns(first)
	},
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeLines, KeepAlive: " ",
		AppendFault: func(dst, fault []byte) []byte { return append(append(dst, fault...), '\n') },
	},
	Routes: []endpoint.Route{
		endpoint.Get("/api/version", endpoint.Public, endpoint.Fixed(`{"version":"`+ollama.Version+`"}`)), // asked for without a token
		endpoint.Get("/api/tags", access.ScopeModelsList, listTags),
		endpoint.Get("/api/ps", access.ScopeModelsList, listProcesses),
		endpoint.Post("/api/show", access.ScopeModelsList, show),
		endpoint.Post("/api/chat", access.ScopeInference, func(c *endpoint.Call) error { return answerText(c, "chat", ollama.ParseChat) }),
		endpoint.Post("/api/generate", access.ScopeInference, func(c *endpoint.Call) error {
			return answerText(c, "generate", ollama.ParseGenerate)
		}),
		endpoint.Post("/api/pull", access.ScopeModelsManage, pull),
		endpoint.Post("/api/push", access.ScopeModelsManage,
			refuse("models can't be pushed from here: use the tools of the hub that they are for")),
		endpoint.Post("/api/copy", access.ScopeModelsManage, copyModel),
		endpoint.Post("/api/create", access.ScopeModelsManage, create),
		endpoint.Delete("/api/delete", access.ScopeModelsManage, deleteModel),
		endpoint.Get("/api/blobs/*", access.ScopeModelsManage, func(c *endpoint.Call) error { // a client that asks offers to send its own
			return &translate.Error{Kind: translate.KindModelNotFound, Message: "blob " + endpoint.Quoted(c.Param) + " not found"}
		}),
		endpoint.Post("/api/blobs/*", access.ScopeModelsManage,
			refuse("files can't be sent here: put a GGUF file into the models folder, as models/<publisher>/<name>/<file>.gguf")),
		endpoint.Post("/api/embed", access.ScopeInference, func(c *endpoint.Call) error { return answerEmbeddings(c, ollama.ParseEmbed) }),
		endpoint.Post("/api/embeddings", access.ScopeInference, func(c *endpoint.Call) error {
			return answerEmbeddings(c, ollama.ParseEmbeddings)
		}),
	},
}
