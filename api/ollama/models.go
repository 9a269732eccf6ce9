package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// version is GET /api/version. Clients ask for it before they have a token.
func version(c *endpoint.Call) error {
	c.WriteJSON(http.StatusOK, []byte(`{"version":"`+ollama.Version+`"}`))
	return nil
}

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
			ModifiedAt: m.Changed, Size: m.SizeBytes, Digest: digestOf(m), Details: detailsOf(m, models[i].ContextLength), Capabilities: capabilitiesOf(m, nil),
		}
		for _, name := range tagNames(&models[i]) {
			tag.Name, tag.Model = name, name
			list.Models = append(list.Models, tag)
		}
	}
	slices.SortStableFunc(list.Models, func(a, b ollama.Tag) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
	return c.Answer(list)
}

// tagNames are the names under which a model is listed, each of them once: its key and its aliases. What Ollama has pulled has only Ollama's names, if
// an import has made these its aliases: that is how its clients know it.
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
		m := &in.Spec.Model
		if in.Status.IsLoading() || in.Status == schedule.Stopping || in.Spec.Remote != nil && !in.IsLoaded() || !c.Identity.MayUse(m.FullKey()) {
			continue
		}
		name := ollama.Listed(m.Key)
		if in.ID != m.Key && (in.Spec.Remote == nil || isHere[m.Key]) {
			name = in.ID
		}
		isHere[m.Key] = true
		list.Models = append(list.Models, ollama.Process{
			Name: name, Model: name, Size: in.Memory, Digest: digestOf(m), Details: detailsOf(m, in.Spec.ContextLength), ExpiresAt: expiryOf(in, now),
			SizeVRAM: outsideCPU(in.Devices()), ContextLength: in.Spec.ContextLength,
		})
	}
	slices.SortStableFunc(list.Models, func(a, b ollama.Process) int { return b.ExpiresAt.Compare(a.ExpiresAt) })
	return c.Answer(list)
}

// outsideCPU is the memory on devices other than the processor, in bytes.
func outsideCPU(devices []schedule.DeviceMemory) (bytes int64) {
	for _, d := range devices {
		if d.Device != schedule.CPU {
			bytes += d.Bytes
		}
	}
	return bytes
}

// expiryOf is when an instance is unloaded if it isn't used any more.
func expiryOf(in *supervisor.Info, now time.Time) time.Time {
	switch {
	case !in.Expires.IsZero():
		return in.Expires
	case in.Spec.TTL > 0:
		return now.Add(in.Spec.TTL)
	default:
		return ollama.Forever(now)
	}
}

// detailsOf describes a model in few words. context is what a request to it gets.
func detailsOf(m *catalog.Model, context int) ollama.Details {
	d := ollama.Details{
		Format: string(m.Format), Family: m.Architecture, Families: []string{}, ParameterSize: m.ParamsString(), QuantizationLevel: m.Quantization.Name,
		ContextLength: context,
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
	for _, ability := range []struct {
		has  bool
		word string
	}{{m.Vision, "vision"}, {m.ToolUse, "tools"}, {fillsGaps(metadata), "insert"}, {len(m.Reasoning.Options) > 0, "thinking"}} {
		if ability.has {
			all = append(all, ability.word)
		}
	}
	return all
}

// fillsGaps reports whether a file names the tokens by which a model fills a gap in a text.
func fillsGaps(metadata map[string]any) bool {
	for _, key := range []string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"} {
		if metadata[key] != nil {
			return true
		}
	}
	return false
}

// unknownModel is the error of a name of no model, or of several.
func unknownModel(missing *catalog.NotFoundError) *translate.Error {
	e := ollama.NotFound(endpoint.Presentable(missing.Name, endpoint.MaxParam))
	if len(missing.Ambiguous) > 0 {
		e.Message = "model " + endpoint.Quoted(missing.Name) + " not found: the name is ambiguous, it may be " + strings.Join(missing.Ambiguous, ", ")
	}
	return e
}

func nameField(c *endpoint.Call) (*jsonbody.Body, string, error) {
	body, err := c.Body()
	if err != nil {
		return nil, "", err
	}
	name, err := modelName(body)
	return body, name, err
}

// modelName is the name of the model in a body: in "model", or in "name", as older clients have it.
func modelName(body *jsonbody.Body) (string, error) {
	for _, field := range []string{"model", "name"} {
		name, bad := body.String(field)
		if bad != nil {
			return "", bad
		}
		if name != "" {
			return name, nil
		}
	}
	return "", translate.Missing("model")
}
