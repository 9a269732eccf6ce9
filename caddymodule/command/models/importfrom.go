package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/migration"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// importFrom is `lmcaddy import --from`, with its flags.
type importFrom struct{ program, output string }

// otherPrograms are those whose settings can be taken over.
var otherPrograms = []string{"ollama", "lmstudio", "llama-swap"}

func defineImportFrom(cmd *cobra.Command) *importFrom {
	f := new(importFrom)
	cmd.Flags().StringVar(&f.program, "from", "", "the program to take over from: "+strings.Join(otherPrograms, ", "))
	cmd.Flags().StringVarP(&f.output, "output", "o", "Caddyfile", "with --from, the Caddyfile to write, which must not exist yet")
	// it fails only if there is no such flag
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(otherPrograms, cobra.ShellCompDirectiveNoFileComp))
	return f
}

// args checks the arguments: a file, or with --from the program's folder or configuration, if that isn't at its usual place.
func (f *importFrom) args(cmd *cobra.Command, args []string) error {
	switch {
	case f.program == "":
		return cobra.ExactArgs(1)(cmd, args)
	case !slices.Contains(otherPrograms, f.program):
		return kit.CheckValue("from", f.program, otherPrograms)
	case f.program == "llama-swap" && len(args) == 0:
		return errors.New("name the configuration of llama-swap: lmcaddy import --from llama-swap config.yaml")
	default:
		return cobra.MaximumNArgs(1)(cmd, args)
	}
}

// importedFrom is what `lmcaddy import --from --json` prints.
type importedFrom struct {
	From      string       `json:"from"`
	Output    string       `json:"output"`    // the file of the Caddyfile
	Caddyfile string       `json:"caddyfile"` // its text
	Done      bool         `json:"imported"`  // false with --dry-run
	Links     []linkedFile `json:"links"`     // what is linked into the models folder
	Notes     []string     `json:"notes"`     // what has no equivalent
}

// linkedFile is a file that is linked into the models folder.
type linkedFile struct {
	Source string `json:"source"`
	Path   string `json:"path"`
}

func (f *importFrom) run(cmd *cobra.Command, args []string, dry, asJSON bool) error {
	ctx, stop := kit.Interruptible(cmd)
	defer stop()
	dir, err := home.FromEnvironment()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.output); err == nil && !dry {
		return fmt.Errorf("%s already exists, and is not replaced: choose another file with --output, or look first with --dry-run",
			f.output)
	}
	config, err := f.read(ctx, dir, args)
	if err != nil {
		return err
	}
	done := importedFrom{From: f.program, Output: f.output, Links: []linkedFile{}, Notes: []string{}}
	isEmpty := len(config.Models) == 0 && !hasModels(ctx, dir, config)
	if !dry && !isEmpty {
		undo, err := reserve(f.output)
		if err != nil {
			return err
		}
		defer func() { undo(done.Done) }()
		if err := makeLinks(ctx, dir, config); err != nil {
			return err
		}
		isEmpty = len(config.Models) == 0 && len(config.ModelsDirs) == 0
	}
	for _, link := range config.Links {
		done.Links = append(done.Links, linkedFile{link.File, linkPath(dir, link)})
	}
	config.Finish()
	done.Notes = append(done.Notes, config.Notes...)
	if !isEmpty {
		if done.Caddyfile, err = checked(config.Caddyfile(f.program)); err != nil {
			return fmt.Errorf("what was found in the settings of %s can't be written as a Caddyfile: %w", f.program, err)
		}
	}
	if !dry && !isEmpty {
		if err := os.WriteFile(f.output, []byte(done.Caddyfile), 0o600); err != nil {
			return err
		}
		done.Done = true
	}
	if err := done.write(cmd, config.Port, dry, asJSON); err != nil || !isEmpty {
		return err
	}
	return fmt.Errorf("no model of %s can be taken over, so nothing was written: the notes say why", f.program)
}

// write shows what was done, or would be.
func (i *importedFrom) write(cmd *cobra.Command, port int, dry, asJSON bool) error {
	if asJSON {
		return kit.WriteJSON(cmd.OutOrStdout(), i)
	}
	for _, link := range i.Links {
		if dry {
			terminal.Printf(cmd.ErrOrStderr(), "%s would be linked to %s.\n", link.Source, link.Path)
		}
	}
	for _, note := range i.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "-", kit.OneLine(kit.InWords(note)))
	}
	var err error
	switch {
	case dry:
		_, err = fmt.Fprint(cmd.OutOrStdout(), i.Caddyfile)
	case i.Done:
		_, err = terminal.Printf(cmd.OutOrStdout(),
			kit.InWords("%s is written. End %s, since it has the port %d, and start: lmcaddy run --config %s\n"), i.Output, i.From, port,
			i.Output)
	}
	return err
}

// hasModels reports whether there are models in the folders that are used where they are.
func hasModels(ctx context.Context, dir home.Dir, config *migration.Config) bool {
	return slices.ContainsFunc(config.ModelsDirs, func(folder string) bool {
		found, err := listFound(dir)(ctx, folder)
		return err != nil || slices.ContainsFunc(found, func(f migration.Found) bool { return f.Err == nil })
	})
}

// checked returns a Caddyfile that a server can start with.
func checked(text string) (string, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err == nil {
		_, err = caddymodule.Describe(config)
	}
	return text, err
}

// reserve makes an empty file, before anything else is done. The function that it returns removes it again, unless it was written.
func reserve(path string) (func(isWritten bool), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the Caddyfile can't be written: %w. Choose another file with --output", err)
	}
	return func(isWritten bool) {
		if !isWritten {
			_ = os.Remove(path) // it is empty
		}
	}, file.Close()
}

// read reads the settings of the other program, at the first of its usual places that has models.
func (f *importFrom) read(ctx context.Context, dir home.Dir, args []string) (*migration.Config, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	var usual []string
	switch f.program {
	case "ollama":
		usual = migration.OllamaFolders(user)
	case "lmstudio":
		usual = []string{migration.LMStudioFolder(user)}
	}
	if len(args) > 0 {
		usual = []string{home.Absolute(args[0])}
	}
	var empty error
	for _, place := range usual {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		config, err := f.readAt(ctx, place, listFound(dir))
		if _, isEmpty := errors.AsType[*migration.NoModelsError](err); !isEmpty {
			return config, err
		}
		empty = cmp.Or(empty, err)
	}
	if empty != nil {
		return nil, empty
	}
	return nil, fmt.Errorf("there is no %s: name the folder or file, as in lmcaddy import --from %s PATH",
		strings.Join(usual, ", and no "), f.program)
}

func (f *importFrom) readAt(ctx context.Context, place string, list migration.List) (*migration.Config, error) {
	switch f.program {
	case "ollama":
		return migration.Ollama(ctx, place, os.Getenv, list)
	case "lmstudio":
		return migration.LMStudio(ctx, place, list)
	default:
		return migration.LlamaSwap(ctx, place, list)
	}
}

// listFound returns a function that lists the models in a folder, with those that can't be used, by the keys that they have beside
// the home's own models.
func listFound(dir home.Dir) migration.List {
	return func(ctx context.Context, folder string) ([]migration.Found, error) {
		models := catalogOf(dir.Models())
		models.SetRoots([]string{dir.Models(), folder})
		list, err := models.Models(ctx)
		var found []migration.Found
		for _, m := range list {
			if rel, err := filepath.Rel(folder, m.Path); err == nil && filepath.IsLocal(rel) {
				found = append(found, migration.Found{Key: m.Key, Path: m.Path, Err: m.Err})
			}
		}
		return found, err
	}
}

func linkPath(dir home.Dir, link migration.Link) string {
	return filepath.Join(dir.Models(), link.Publisher, link.Repo, filepath.Base(link.File))
}

// makeLinks links files into the models folder. A file that can't be a model becomes a note.
func makeLinks(ctx context.Context, dir home.Dir, config *migration.Config) error {
	if len(config.Links) == 0 {
		return nil
	}
	if err := dir.Make(); err != nil {
		return err
	}
	models := catalogOf(dir.Models())
	for _, link := range config.Links {
		key, path := catalog.Key(link.Publisher, link.Repo), linkPath(dir, link)
		if !same(link.File, path) { // else linked by an earlier run
			what := catalog.Import{
				Source: link.File, Models: dir.Models(), Publisher: link.Publisher, Repo: link.Repo,
				How: catalog.SymLink,
			}
			_, err := models.Import(ctx, what)
			if refused, ok := errors.AsType[*catalog.ImportError](err); ok {
				config.Notes = append(config.Notes, refused.Error())
				if !link.IsProjector {
					config.Rename(key, "")
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("linking %s to %s: %w", link.File, path, err)
			}
		}
	}
	return nameLinked(ctx, models, dir, config)
}

// nameLinked gives models the keys that their files have among those in the models folder.
func nameLinked(ctx context.Context, at *catalog.Catalog, dir home.Dir, config *migration.Config) error {
	models, err := at.Models(ctx)
	for _, link := range config.Links {
		path := linkPath(dir, link)
		i := slices.IndexFunc(models, func(m catalog.Model) bool { return m.Path == path })
		if i >= 0 && !link.IsProjector {
			config.Rename(catalog.Key(link.Publisher, link.Repo), models[i].Key)
		}
	}
	return err
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
