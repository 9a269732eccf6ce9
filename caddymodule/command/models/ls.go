// Package models has the commands about models: finding, downloading, importing, loading and deleting them.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
)

// CompleteModels completes the key of a model. Without a server, the models in the home are known.
func CompleteModels(c *kit.Connection) kit.Completer {
	return c.CompleteWith(func(ctx context.Context, to *client.Client) []string {
		var models resource.Models
		if list, _, err := listModels(ctx, c, to, io.Discard, false); err != nil || json.Unmarshal(list, &models) != nil {
			return nil
		}
		keys := make([]string, len(models.Models))
		for i := range models.Models {
			keys[i] = models.Models[i].Key
		}
		return keys
	}, 1)
}

// DefineLS defines `lmcaddy ls`.
func DefineLS(cmd *cobra.Command) {
	cmd.Long = `Lists the models, and which of them are loaded.

It asks the server that runs on $LMCADDY_HOME. If none is running, it reads the models folder there, but not
those that a Caddyfile adds (models_dir).`
	cmd.Example = "  lmcaddy ls\n  lmcaddy ls --all\n  lmcaddy ls --json"
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/models has it; with --all, also a member companions")
	all := cmd.Flags().Bool("all", false, "also list the files that belong to models, such as projectors and drafters")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var list json.RawMessage
		var companions resource.Companions
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) (err error) {
			list, companions, err = listModels(ctx, to, c, cmd.ErrOrStderr(), *all)
			return err
		})
		if err != nil {
			return err
		}
		if *asJSON && *all {
			var both map[string]any
			if err := kit.Decode(list, &both); err != nil {
				return err
			}
			both["companions"] = companions.Companions
			return kit.WriteJSON(cmd.OutOrStdout(), both)
		}
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), list)
		}
		var models resource.Models
		if err := kit.Decode(list, &models); err != nil {
			return err
		}
		return writeModels(cmd.OutOrStdout(), models, companions.Companions)
	}
}

// below returns a path relative to the folder that it is in, or unchanged if it is elsewhere.
func below(folder, path string) string {
	if rel, err := filepath.Rel(folder, path); err == nil {
		return rel
	}
	return path
}

// listModels returns the models of the server, or of the home's own folder if none runs there, and says so; with companions also the files
// that belong to them.
func listModels(ctx context.Context, c *kit.Connection, to *client.Client, notes io.Writer, withCompanions bool,
) (list json.RawMessage, companions resource.Companions, err error) {
	err = to.Get(ctx, "/api/v1/models", &list)
	if _, isDown := errors.AsType[*client.DownError](err); !isDown || c.Host != "" {
		if err == nil && withCompanions {
			companions, err = to.Companions(ctx)
		}
		return list, companions, err
	}
	dir, err := home.FromEnvironment()
	if err != nil {
		return nil, companions, err
	}
	terminal.Printf(notes, "No lmcaddy is running on %s. These are the models in %s, without those in a Caddyfile's models_dir.\n", dir,
		dir.Models())
	models, err := catalogOf(dir.Models()).Models(ctx)
	if err != nil {
		return nil, companions, err
	}
	found := resource.Models{Models: []resource.Model{}}
	for i := range models {
		if m := &models[i]; m.Err != nil {
			found.Broken = append(found.Broken, resource.Broken{Key: m.Key, Path: below(dir.Models(), m.Path), Error: m.Err.Error()})
		} else {
			found.Models = append(found.Models, manage.DescribeModel(m))
		}
	}
	if withCompanions {
		var files []catalog.Companion
		files, err = catalogOf(dir.Models()).Companions(ctx)
		for _, p := range files {
			companions.Companions = append(companions.Companions, resource.Companion{
				Key: p.Key, Role: p.Role, Path: below(dir.Models(), p.Path), SizeBytes: p.SizeBytes, Models: p.Of,
			})
		}
	}
	list, failed := json.Marshal(found)
	return list, companions, errors.Join(err, failed)
}

// catalogOf returns the catalog of a folder. It logs nothing about broken files: the caller shows them.
func catalogOf(folder string) *catalog.Catalog {
	models := node.NewCatalog(slog.New(slog.DiscardHandler), node.BuiltIn())
	models.SetRoots([]string{folder})
	return models
}

// writeModels shows models, and files that belong to them, to people.
func writeModels(out io.Writer, list resource.Models, companions []resource.Companion) error {
	text := terminal.NewPage(out)
	if len(list.Models) == 0 {
		text.WriteString(kit.InWords("There are no models. \"lmcaddy get\" downloads one, \"lmcaddy import\" adds a local file.\n"))
	} else {
		_ = terminal.WriteTable(text, "MODEL\tTYPE\tPARAMS\tQUANT\tSIZE\tCONTEXT\tLOADED", list.Models, modelRow) // to memory
	}
	for i := range list.Models {
		if m := &list.Models[i]; m.EngineProblem != "" {
			terminal.Printf(text, "%s can't be loaded: %s.\n", m.Key, m.EngineProblem)
		}
	}
	for i := range list.Models {
		if m := &list.Models[i]; len(m.Aliases) > 0 {
			terminal.Printf(text, "%s has the aliases %s.\n", m.Key, strings.Join(m.Aliases, ", "))
		}
	}
	if len(companions) > 0 {
		_ = terminal.WriteTable(text, "\nFILE OF A MODEL\tROLE\tSIZE\tMODELS", companions, func(p *resource.Companion) []string {
			return []string{p.Key, p.Role, kit.Size(p.SizeBytes), kit.OrDash(strings.Join(p.Models, ", "))}
		})
	}
	for i, b := range list.Broken {
		if i == 0 {
			text.WriteString("\nThese can't be used:\n")
		}
		terminal.Printf(text, "%s: %s (%s)\n", b.Key, strings.TrimRight(b.Error, "."), b.Path)
	}
	return text.Flush()
}

func modelRow(m *resource.Model) []string {
	params, quantization, loaded := "", "", "-"
	if m.Params != nil {
		params = *m.Params
	}
	if m.Quantization != nil && m.Quantization.Name != nil {
		quantization = *m.Quantization.Name
	}
	switch n := len(m.Instances); n {
	case 0:
	case 1:
		loaded = "loaded"
	default:
		loaded = fmt.Sprintf("loaded (%d)", n)
	}
	var places []string
	for _, p := range m.Places {
		if p.Reachable {
			places = append(places, p.Remote)
		} else {
			places = append(places, p.Remote+" (unreachable)")
		}
	}
	if len(places) > 0 {
		loaded = strings.TrimPrefix(loaded+", on "+strings.Join(places, ", "), "-, ")
	}
	bytes, context := kit.Size(m.SizeBytes), strconv.Itoa(m.MaxContextLength)
	if len(m.Places) > 0 { // remotes may not tell
		if m.SizeBytes == 0 {
			bytes = ""
		}
		if m.MaxContextLength == 0 {
			context = ""
		}
	}
	return []string{m.Key, m.Type, kit.OrDash(params), kit.OrDash(quantization), kit.OrDash(bytes), kit.OrDash(context), loaded}
}
