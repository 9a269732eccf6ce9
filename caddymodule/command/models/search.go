package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineSearch defines `lmcaddy search`.
func DefineSearch(cmd *cobra.Command) {
	cmd.Long = `Searches the server's hub, huggingface.co unless the Caddyfile names others, for models that can be run here. Well-known
models come first, then those that are downloaded most.

SIZE is that of the quantization that "lmcaddy get" would choose; FITS says whether it fits the memory that the server
has for models. With --host, the token needs the scope models.manage.`
	cmd.Example = `  lmcaddy search qwen3
  lmcaddy search gemma 3 4b --limit 5
  lmcaddy search embedding --json`
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if strings.TrimSpace(strings.Join(args, "")) == "" {
			return errors.New("say what to search for, such as \"lmcaddy search qwen3 4b\"")
		}
		return nil
	}
	to := kit.NewConnection(cmd)
	limit := cmd.Flags().IntP("limit", "n", 0, "the most results, up to 50 (default: 10)")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/models/search has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words := strings.Join(args, " ")
		ask := func(ctx context.Context, c *client.Client, into any) error { return c.Search(ctx, words, *limit, into) }
		return kit.Show(to, cmd, *asJSON, ask, func(out io.Writer, found *resource.Found) error {
			if len(found.Models) == 0 {
				return fmt.Errorf("no model that can be run here is found for %q: try fewer words, or another spelling", words)
			}
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), kit.InWords("\"lmcaddy get MODEL\" downloads one of them."))
			const head = "MODEL\tQUANT\tSIZE\tFITS\tDOWNLOADS\tNOTE"
			return terminal.WriteTable(out, head, found.Models, func(m *resource.FoundModel) []string {
				fits, downloads := "-", "-"
				if m.Fits != nil {
					fits = map[bool]string{true: "yes", false: "no"}[*m.Fits]
				}
				if m.Downloads != nil {
					downloads = humanize.Comma(*m.Downloads)
				}
				return []string{m.Model, kit.OrDash(m.Quantization), foundSize(m), fits, downloads, foundNote(m)}
			})
		})
	}
}

func foundSize(m *resource.FoundModel) string {
	if m.SizeBytes == nil {
		return "-"
	}
	return kit.Size(*m.SizeBytes)
}

func foundNote(m *resource.FoundModel) string {
	switch {
	case m.Downloaded:
		return "downloaded"
	case m.Gated:
		return "gated"
	case m.Format != "gguf":
		return m.Format
	default:
		return ""
	}
}

func isURL(model string) bool { return strings.Contains(model, "://") }

// chooseFound searches for a model that doesn't exist under a name, and asks which of those found is meant. Where it can't ask, the
// error lists them. If none is found, it returns the first error.
func chooseFound(ctx context.Context, cmd *cobra.Command, c *client.Client, name string, why error) (string, error) {
	bare, quantization, hasQuantization := strings.Cut(name, "@")
	if isURL(name) || strings.TrimSpace(bare) == "" {
		return "", why
	}
	found, failed := search(ctx, c, bare)
	switch {
	case failed != nil && isUnknown(why) && !isUnknown(failed): // such as without a network
		return "", fmt.Errorf("%q is no well-known model, and no hub can be searched for it: %w", bare, failed)
	case len(found) > 0 && strings.EqualFold(found[0].Repository, bare): // a gated one
		return "", why
	case len(found) == 0 && isUnknown(why):
		return "", fmt.Errorf("there is no model %q to download, and none like it is found. Check the spelling, "+
			"or look for one with \"lmcaddy search\"", bare)
	case len(found) == 0:
		return "", why
	}
	var lines, names []string
	for i := range found {
		m := &found[i]
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s  %s  %s  %s", m.Model, foundSize(m), m.Quantization, foundNote(m))))
		names = append(names, m.Model)
	}
	if !kit.CanAsk(cmd) {
		return "", fmt.Errorf("there is no model %q to download. Found are: %s. Type one of these names, such as \"lmcaddy get %s\"",
			bare, strings.Join(names, ", "), names[0])
	}
	terminal.Printf(cmd.ErrOrStderr(), "There is no model %q to download. These are like it:\n", bare)
	chosen, err := kit.AskWhich(ctx, cmd, "Which one?", lines, names, "nothing was downloaded")
	if err == nil && hasQuantization && !isURL(chosen) {
		chosen += "@" + quantization
	}
	return chosen, err
}

// search returns the models that are found by the words of a name, or else by its publisher.
func search(ctx context.Context, c *client.Client, name string) (_ []resource.FoundModel, failed error) {
	queries := []string{strings.ReplaceAll(name, "/", " "), strings.NewReplacer("/", " ", "-", " ", "_", " ", ":", " ").Replace(name)}
	if publisher, _, ok := strings.Cut(name, "/"); ok {
		queries = append(queries, publisher+"/")
	}
	for _, words := range slices.Compact(queries) {
		var found resource.Found
		if err := c.Search(ctx, words, 0, &found); err != nil {
			failed = err
		} else if len(found.Models) > 0 {
			return found.Models, nil
		}
	}
	return nil, failed
}

// ShowPlan tells what will be downloaded. The error says that the server's disk has no room for it.
func ShowPlan(notes io.Writer, model string, p *resource.Preview) error {
	if p.Status == "already_downloaded" || len(p.Files) == 0 {
		return nil
	}
	if p.Quantization != "" && !strings.Contains(model, "@") {
		model += ", " + p.Quantization
	}
	from := ""
	if p.URL != "" {
		from = " from " + p.URL
	}
	if p.FreeBytes == nil {
		return kit.Wrapped(notes, "%s: %s in %s%s.", model, kit.Size(p.TotalBytes), kit.Count(len(p.Files), "file"), from)
	}
	if !p.FitsDisk {
		others := ""
		if p.OtherBytes > 0 {
			others = fmt.Sprintf(", and other downloads %s", kit.Size(p.OtherBytes))
		}
		return fmt.Errorf("%s doesn't fit the disk: it needs %s%s, and %s are free. Free some space, "+
			"or choose a smaller quantization: \"lmcaddy search\" shows sizes",
			model, kit.Size(p.LeftBytes), others, kit.Size(*p.FreeBytes))
	}
	return kit.Wrapped(notes, "%s: %s in %s%s; %s of the disk are free.", model, kit.Size(p.TotalBytes), kit.Count(len(p.Files), "file"),
		from, kit.Size(*p.FreeBytes))
}
