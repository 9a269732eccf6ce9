package models

import (
	"context"
	"errors"
	"fmt"
	"io"
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
