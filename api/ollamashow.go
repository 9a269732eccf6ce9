package api

import (
	"cmp"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// ollamaShow is POST /api/show.
func (c *call) ollamaShow() error {
	_, name, err := c.nameField()
	if err != nil {
		return err
	}
	target, err := c.find(name)
	if err != nil {
		return err
	}
	m := &target.Model
	m.Reasoning = c.node.Reasoning(m)
	details, err := c.node.Details(m)
	if err != nil {
		return err
	}
	shown := ollama.Shown{
		License: licenseText(details.License), Template: details.ChatTemplate, Details: ollamaDetails(m), ModifiedAt: m.Changed,
		ModelInfo: modelInfo(m, details.Metadata), Capabilities: capabilitiesOf(m, details.Metadata),
	}
	custom, ok := c.node.CustomModel(name)
	if ok {
		shown.Details.ParentModel = ollama.Listed(m.Key)
	}
	shown.System, shown.Parameters = ollama.System(custom.Defaults), ollama.Parameters(custom.Defaults)
	shown.Modelfile = ollama.Modelfile(ollama.Listed(m.Key), custom.Defaults)
	return c.answer(shown)
}

// modelInfo has what a model's file says of it, under the keys of GGUF files. Models in other formats have the most important of them.
func modelInfo(m *catalog.Model, metadata map[string]any) map[string]any {
	info := map[string]any{}
	for key, value := range metadata {
		if key != "general.name" && !strings.HasPrefix(key, "tokenizer.chat_template") {
			info[key] = value
		}
	}
	for key, value := range map[string]any{
		"general.architecture":                                m.Architecture,
		"general.basename":                                    m.DisplayName,
		"general.parameter_count":                             m.Parameters,
		cmp.Or(m.Architecture, "general") + ".context_length": m.MaxContextLength,
	} {
		if _, given := info[key]; !given && value != "" && value != 0 && value != int64(0) {
			info[key] = value
		}
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
