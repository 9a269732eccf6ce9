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
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/filename"
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
	cmd.Long = `Lists the models, and which of them are loaded; with FILTER those whose names, with or without the publisher, begin so or
match it: "qwen3", "*-embed*".

It asks the server that runs on $LMCADDY_HOME. If none is running, it reads the models folder there, but not
those that a Caddyfile adds (models_dir).`
	cmd.Example = "  lmcaddy ls\n  lmcaddy ls qwen3\n  lmcaddy ls --all\n  lmcaddy ls --json"
	cmd.Args = cobra.MaximumNArgs(1)
	to := kit.NewConnection(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/models has it; with --all, also a member companions")
	all := cmd.Flags().Bool("all", false, "also list the files that belong to models, such as projectors and drafters")
	isWide := cmd.Flags().BoolP("wide", "w", false, "cut no names that are too long for the terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var list json.RawMessage
		var found struct {
			resource.Models
			resource.Companions
		}
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) (err error) {
			list, found.Companions, err = listModels(ctx, to, c, cmd.ErrOrStderr(), *all || !*asJSON)
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == "missing_scope" && list != nil && !*all {
				return nil // a guest's token lists models, but not the files that belong to them
			}
			return err
		})
		if err != nil {
			return err
		}
		if *asJSON && !*all && len(args) == 0 {
			return kit.WriteJSON(cmd.OutOrStdout(), list)
		}
		if err := kit.Decode(list, &found.Models); err != nil {
			return err
		}
		if len(args) > 0 {
			isOther := func(key string) bool { return !matches(key, args[0]) }
			found.Models.Models = slices.DeleteFunc(found.Models.Models, func(m resource.Model) bool { return isOther(m.Key) })
			found.Broken = slices.DeleteFunc(found.Broken, func(b resource.Broken) bool { return isOther(b.Key) })
			files := &found.Companions.Companions
			*files = slices.DeleteFunc(*files, func(c resource.Companion) bool { return isOther(c.Key) })
		}
		switch {
		case *asJSON && *all:
			return kit.WriteJSON(cmd.OutOrStdout(), found)
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), found.Models)
		}
		return writeModels(cmd.OutOrStdout(), found.Models, found.Companions.Companions, *all, *isWide, len(args) > 0)
	}
}

// matches reports whether a key, with or without its publisher, begins with a filter or matches it.
func matches(key, filter string) bool {
	_, bare, _ := strings.Cut(key, "/")
	filter = strings.ToLower(filter)
	return strings.HasPrefix(key, filter) || strings.HasPrefix(bare, filter) || kit.HasAlias([]string{filter}, key) ||
		kit.HasAlias([]string{filter}, bare)
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
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.IsUnknownEndpoint() { // an older server
				err = nil
			}
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

// writeModels shows models to people, and the files that belong to them: all, or those that have no model.
func writeModels(out io.Writer, list resource.Models, companions []resource.Companion, all, isWide, isFiltered bool) error {
	text := terminal.NewPage(out)
	var to io.Writer = text
	if isWide {
		to = &text.Builder // has no width
	}
	switch {
	case len(list.Models) > 0:
		_ = terminal.WriteTable(to, "MODEL\tTYPE\tPARAMS\tQUANT\tSIZE\tCONTEXT\tLOADED", list.Models, modelRow) // to memory
	case isFiltered:
		text.WriteString(kit.InWords("No model matches. \"lmcaddy ls\" lists all.\n"))
	default:
		text.WriteString(kit.InWords("There are no models. \"lmcaddy get\" downloads one, \"lmcaddy import\" adds a local file.\n"))
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
	if all && len(companions) > 0 {
		_ = terminal.WriteTable(to, "\nFILE OF A MODEL\tROLE\tSIZE\tMODELS", companions, func(p *resource.Companion) []string {
			return []string{p.Key, p.Role, kit.Size(p.SizeBytes), kit.OrDash(strings.Join(p.Models, ", "))}
		})
	}
	for i := range companions {
		switch c := &companions[i]; {
		case len(c.Models) > 0:
		case c.Role == filename.Safetensors:
			terminal.Printf(text, "%s has safetensors, which no engine here runs: get the model as GGUF.\n", c.Path)
		case c.Role == filename.Projector:
			terminal.Printf(text, "%s is a projector without a model: put the model's file beside it.\n", c.Path)
		}
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
