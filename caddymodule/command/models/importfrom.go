package models

import (
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
	if _, err := os.Stat(filepath.Dir(f.output)); err != nil {
		return fmt.Errorf("the Caddyfile can't be written: %w. Choose another file with --output", err)
	}
	done := importedFrom{From: f.program, Output: f.output, Links: []linkedFile{}, Notes: []string{}}
	config, err := f.read(ctx, dir, args, done.linker(ctx, dir, dry))
	if err != nil {
		return err
	}
	if config.Usable > 0 {
		done.Caddyfile = config.Caddyfile(f.program)
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(done.Caddyfile), nil)
		if err == nil { // a server can start with it
			_, err = caddymodule.Describe(adapted)
		}
		if err != nil {
			return fmt.Errorf("what was found in the settings of %s can't be written as a Caddyfile: %w", f.program, err)
		}
	}
	done.Notes = append(done.Notes, config.Notes...)
	if !dry && config.Usable > 0 {
		if err := os.WriteFile(f.output, []byte(done.Caddyfile), 0o600); err != nil {
			return err
		}
		done.Done = true
	}
	if err := done.write(cmd, config.Port, dry, asJSON); err != nil || config.Usable > 0 {
		return err
	}
	return fmt.Errorf("no model of %s can be taken over, so nothing was written: the notes say why", f.program)
}

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

// read reads the settings of the other program, at the first of its usual places that has models.
func (f *importFrom) read(ctx context.Context, dir home.Dir, args []string, link migration.Link) (*migration.Config, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	usual := migration.OllamaFolders(user, os.Getenv)
	if f.program == "lmstudio" {
		usual = []string{migration.LMStudioFolder(user)}
	}
	if len(args) > 0 {
		usual = []string{home.Absolute(args[0])}
	}
	none := fmt.Errorf("there is no %s: name the folder or file, as in lmcaddy import --from %s PATH",
		strings.Join(usual, ", and no "), f.program)
	for _, place := range usual {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var config *migration.Config
		switch f.program {
		case "ollama":
			config, err = migration.Ollama(ctx, place, os.Getenv, listFound(dir))
		case "lmstudio":
			config, err = migration.LMStudio(ctx, place, listFound(dir))
		default:
			config, err = migration.LlamaSwap(ctx, place, listFound(dir), link)
		}
		if _, isEmpty := errors.AsType[*migration.NoModelsError](err); !isEmpty {
			return config, err
		}
		none = err
	}
	return nil, none
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

// linker returns a function that links a file into the models folder, unless an earlier run has.
func (i *importedFrom) linker(ctx context.Context, dir home.Dir, dry bool) migration.Link {
	return func(file, publisher, repo string) (string, error) {
		path := filepath.Join(dir.Models(), publisher, repo, filepath.Base(file))
		source, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		if there, err := os.Stat(path); dry || err == nil && os.SameFile(source, there) {
			i.Links = append(i.Links, linkedFile{file, path})
			return catalog.Key(publisher, repo), nil
		}
		if err := dir.Make(); err != nil {
			return "", err
		}
		what := catalog.Import{Source: file, Models: dir.Models(), Publisher: publisher, Repo: repo, How: catalog.SymLink}
		done, err := bring(ctx, what)
		if err != nil {
			return "", err
		}
		i.Links = append(i.Links, linkedFile{file, path})
		if done.Model == nil { // a projector
			return catalog.Key(publisher, repo), nil
		}
		return *done.Model, nil
	}
}
