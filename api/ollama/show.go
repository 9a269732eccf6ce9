package ollama

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// show is POST /api/show.
func show(c *endpoint.Call) error {
	_, name, err := nameField(c)
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
	context := contextOf(c, target, custom.Defaults)
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

// contextOf is the context that a request to a target gets. The defaults of a name that a client has given count if the request loads the model.
func contextOf(c *endpoint.Call, target node.Target, defaults node.Preset) int {
	context := c.Node.Loads.ContextLength(c.Request.Context(), target)
	chosen, err := strconv.Atoi(string(defaults["context_length"]))
	if err != nil || endpoint.StateOf(target.Model.Key, c.Node.Instances()) != endpoint.StateNotLoaded {
		return context
	}
	return min(chosen, cmp.Or(target.Model.MaxContextLength, chosen))
}

// modelInfo has what a model's file says of it, under the keys of GGUF files. Models in other formats have the most important of them. The context
// is what a request gets: clients that read it here send prompts of that length.
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
