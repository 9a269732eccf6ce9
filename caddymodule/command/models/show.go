package models

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineShow defines `lmcaddy show`.
func DefineShow(cmd *cobra.Command) {
	cmd.Long = `Shows what is known of a model: its files, what it can do, the settings in force for it, how much memory a load takes,
and its loaded instances. MODEL is any of its names, or the id of an instance.

It asks the server that runs on $LMCADDY_HOME, or the one at --host.`
	cmd.Example = `  lmcaddy show lmcaddy/tinychat
  lmcaddy show lmcaddy/tinychat --template
  lmcaddy show lmcaddy/tinychat --json`
	cmd.Args = cobra.ExactArgs(1)
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = CompleteModels(to)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/models/{key} has it")
	template := cmd.Flags().Bool("template", false, "print the model's chat template, and nothing else")
	cmd.MarkFlagsMutuallyExclusive("json", "template")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error {
			name, err := kit.FullName(ctx, cmd, c, args[0])
			if err != nil {
				return err
			}
			return c.Model(ctx, name, into)
		}
		if *template {
			return kit.Show(to, cmd, false, ask, writeTemplate)
		}
		return kit.Show(to, cmd, *asJSON, ask, writeDetails)
	}
}

func writeTemplate(out io.Writer, m *resource.ModelDetails) error {
	if m.ChatTemplate == nil {
		return fmt.Errorf("%s has no chat template", m.Key)
	}
	text := *m.ChatTemplate
	if terminal.Is(out) {
		text = strings.Map(func(r rune) rune {
			if filename.IsInvisible(r) && r != '\n' && r != '\t' { // a terminal would take it for a command
				return -1
			}
			return r
		}, text)
	}
	_, err := fmt.Fprintln(out, terminal.Text(strings.TrimSuffix(text, "\n")))
	return err
}

// facts are lines of a name and a value, wrapped at the number of columns of the terminal; 0: not wrapped.
type facts struct {
	strings.Builder

	columns int
}

// factIndent is the column at which the values begin.
const factIndent = 17

func (f *facts) add(name, format string, values ...any) {
	if text := terminal.Line(fmt.Sprintf(format, values...)); text != "" {
		fmt.Fprintf(f, "  %-*s %s\n", factIndent-3, name, terminal.Wrap(text, f.columns, factIndent))
	}
}

func writeDetails(out io.Writer, m *resource.ModelDetails) error {
	f := facts{columns: terminal.Columns(out)}
	terminal.Println(&f, m.Key)
	if m.DisplayName != m.Key {
		f.add("Name", "%s", m.DisplayName)
	}
	f.add("Type", "%s", typeInWords(m))
	f.add("Architecture", "%s", architectureInWords(m))
	f.add("Quantization", "%s", quantizationInWords(m.Quantization))
	isHere := len(m.Files) > 0 || len(m.Places) == 0
	if isHere {
		f.add("Size", "%s (%s)", kit.Size(m.SizeBytes), kit.Count(len(m.Files), "file"))
	}
	if isHere || m.MaxContextLength > 0 {
		f.add("Context", "up to %d tokens", m.MaxContextLength)
	}
	f.add("Can", "%s", abilities(m))
	f.add("Engine", "%s", m.Engine)
	f.add("Problem", "%s", m.EngineProblem)
	for _, p := range m.Places {
		f.add("Place", "%s", placeInWords(p))
	}
	f.add("Aliases", "%s", strings.Join(m.Aliases, ", "))
	if m.ChatTemplate != nil {
		f.add("Chat template", "%s", kit.InWords(fmt.Sprintf("%d characters (\"lmcaddy show %s --template\" prints it)",
			len(*m.ChatTemplate), m.Key)))
	}
	if m.Description != nil && m.Description.Description != nil {
		f.add("Description", "%s", strings.Join(strings.Fields(*m.Description.Description), " "))
	}
	writeOrigin(&f, m)
	if len(m.Files) > 0 {
		fmt.Fprintln(&f, "\nFiles")
	}
	for _, file := range m.Files {
		terminal.Printf(&f, "  %-10s %-10s %s\n", file.Role, kit.Size(file.SizeBytes), file.Path)
	}
	for _, p := range m.Companions {
		terminal.Printf(&f, "  %-10s %-10s %s (not loaded with it)\n", p.Role, kit.Size(p.SizeBytes), p.Path)
	}
	if isHere { // settings are about loads on this machine
		writeModelSettings(&f, &m.Settings)
	}
	if m.Load != nil || m.LoadError != "" {
		fmt.Fprintln(&f, "\nA load now")
	}
	if m.Load != nil {
		writeEstimate(&f, m.Load)
	} else {
		f.add("", "%s", m.LoadError)
	}
	if len(m.Instances) > 0 {
		fmt.Fprintln(&f, "\nLoaded instances")
	}
	for _, in := range m.Instances {
		terminal.Printf(&f, "  %s, with a context of %d tokens\n", in.ID, in.Config.ContextLength)
	}
	_, err := io.WriteString(out, f.String())
	return err
}

func writeOrigin(f *facts, m *resource.ModelDetails) {
	if l := m.License; l != nil {
		f.add("License", "%s", strings.TrimSpace(strings.Join([]string{l.ID, l.Name, l.URL}, " ")))
	}
	for _, fact := range []struct {
		name  string
		value *string
	}{{"Author", m.Author}, {"Quantized by", m.QuantizedBy}, {"Source", m.Source}, {"Revision", m.Revision}, {"Made from", m.BaseModel}} {
		if fact.value != nil {
			f.add(fact.name, "%s", *fact.value)
		}
	}
}

func typeInWords(m *resource.ModelDetails) string {
	switch {
	case m.Reranker:
		return "reranker"
	case m.Embeddings:
		return "embedding model"
	default:
		return "language model"
	}
}

func architectureInWords(m *resource.ModelDetails) string {
	text := m.Architecture
	if m.Params != nil {
		text += ", " + *m.Params + " parameters"
	}
	if m.Experts != nil {
		text += fmt.Sprintf(", %d of %d experts for each token", m.Experts.Used, m.Experts.Total)
	}
	return strings.TrimPrefix(text, ", ")
}

func quantizationInWords(q *resource.Quantization) string {
	if q == nil || q.Name == nil {
		return ""
	}
	if q.Bits == nil {
		return *q.Name
	}
	return fmt.Sprintf("%s, %g bits for each weight", *q.Name, *q.Bits)
}

func abilities(m *resource.ModelDetails) string {
	switch {
	case m.Reranker:
		return "rank documents"
	case m.Embeddings:
		return "make embeddings"
	}
	can := []string{"chat"}
	if c := m.Capabilities; c != nil {
		if c.Vision {
			can = append(can, "see images")
		}
		if c.Audio {
			can = append(can, "hear audio")
		}
		if c.ToolUse {
			can = append(can, "use tools")
		}
		if r := c.Reasoning; r != nil {
			text := "reason (" + strings.Join(r.Options, ", ")
			if r.Default != nil && len(r.Options) > 1 {
				text += "; " + *r.Default + " by default"
			}
			can = append(can, text+")")
		}
	}
	return strings.Join(can, ", ")
}

func writeModelSettings(f *facts, s *resource.ModelSettings) {
	fmt.Fprintln(f, "\nSettings")
	byMemory := func(n *int, unit string) string {
		if n == nil {
			return "as memory allows"
		}
		return fmt.Sprintf("%d %s", *n, unit)
	}
	f.add("Context", "%s", byMemory(s.ContextLength, "tokens"))
	f.add("Parallel", "%s", byMemory(s.Parallel, "requests"))
	ttl := "never, once it is loaded"
	if s.TTL > 0 {
		ttl = "after " + kit.SecondsInWords(s.TTL) + " without a request, if one has loaded it"
	}
	f.add("Unloaded", "%s", ttl)
	if s.Draft != nil {
		f.add("Draft model", "%s", *s.Draft)
	}
	yes := map[bool]string{true: "yes"}
	f.add("Preload", "%s", yes[s.Preload])
	f.add("Pinned", "%s", yes[s.Pinned])
	f.add("Arguments", "%s", strings.Join(s.Args, " "))
}

func placeInWords(p resource.Place) string {
	state := "not loaded"
	switch {
	case !p.Reachable:
		state = "unreachable"
	case p.Loaded:
		state = "loaded"
	}
	return fmt.Sprintf("the remote %s, %s; by name: %s", p.Remote, state, p.Instance)
}
