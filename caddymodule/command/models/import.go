package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/migration"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineImport defines `lmcaddy import`, which works on the home folder, with a server running or not.
func DefineImport(cmd *cobra.Command) {
	cmd.Long = `Moves a GGUF file, with all its parts, to $LMCADDY_HOME/models/<publisher>/<repo>, and prints the model's key.
A running server finds the model within seconds. No file is ever replaced.

Without --repo the publisher is "local", and the repo is the file's name without its quantization. A projector
(mmproj-….gguf) goes next to the model that its name indicates.

With --from, it reads how Ollama, LM Studio or llama-swap is set up, and writes a Caddyfile that says the same. Their
models are used where they are; those of llama-swap are linked into the models folder. Nothing of theirs is changed. What
has no equivalent is listed.`
	cmd.Example = `  lmcaddy import ~/Downloads/Gemma-3-4B-Q4_K_M.gguf
  lmcaddy import /mnt/models/Gemma-3-4B-Q4_K_M.gguf --link --repo google/gemma-3-4b
  lmcaddy import --from ollama --dry-run
  lmcaddy import --from llama-swap config.yaml --output Caddyfile`
	from := defineImportFrom(cmd)
	cmd.Args = from.args
	flags := cmd.Flags()
	repo := flags.String("repo", "", "the publisher/repo to import it as")
	dry := flags.Bool("dry-run", false, "only print what would be done")
	asJSON := flags.Bool("json", false, "print JSON: the model, null for a projector, its path, and whether this was done; "+
		"with --from, the Caddyfile, and the files and notes")
	ways := map[catalog.How]*bool{
		catalog.Copy:     flags.BoolP("copy", "c", false, "copy the file instead of moving it"),
		catalog.SymLink:  flags.BoolP("link", "l", false, "make a symbolic link instead of moving the file"),
		catalog.HardLink: flags.BoolP("hard-link", "L", false, "make a hard link, on the same file system, instead of moving the file"),
	}
	cmd.MarkFlagsMutuallyExclusive("copy", "link", "hard-link")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if from.program != "" {
			return from.run(cmd, args, *dry, *asJSON)
		}
		what := catalog.Import{Source: args[0], How: catalog.Move}
		for how, chosen := range ways {
			if *chosen {
				what.How = how
			}
		}
		if *repo != "" {
			var ok bool
			if what.Publisher, what.Repo, ok = strings.Cut(*repo, "/"); !ok {
				return fmt.Errorf("--repo %s: give a publisher and a name, as in --repo qwen/qwen3-4b", *repo)
			}
		}
		ctx, stop := kit.Interruptible(cmd)
		defer stop()
		done, err := importFile(ctx, what, *dry)
		if err != nil {
			return err
		}
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), done)
		}
		return done.write(cmd, what)
	}
}

// imported is what `lmcaddy import --json` prints.
type imported struct {
	Model *string `json:"model"` // its key; null for a projector
	Path  string  `json:"path"`
	Done  bool    `json:"imported"` // false with --dry-run
}

func (i *imported) write(cmd *cobra.Command, what catalog.Import) error {
	notes := cmd.ErrOrStderr()
	would := "is"
	if !i.Done {
		would = "would be"
	}
	how := map[catalog.How]string{
		catalog.Move: "moved", catalog.Copy: "copied", catalog.SymLink: "linked",
		catalog.HardLink: "hard-linked",
	}[what.How]
	terminal.Printf(notes, "%s %s %s to %s.\n", what.Source, would, how, i.Path)
	if i.Model == nil {
		fmt.Fprintln(notes, "It is a projector, not a model: the models in its folder use it to read images.")
		return nil
	}
	if i.Done {
		terminal.Printf(notes, kit.InWords("\"lmcaddy chat %s\" asks it.\n"), *i.Model)
	}
	_, err := terminal.Println(cmd.OutOrStdout(), *i.Model)
	return err
}

func importFile(ctx context.Context, what catalog.Import, dry bool) (imported, error) {
	dir, err := home.FromEnvironment()
	if err != nil {
		return imported{}, err
	}
	what.Models = dir.Models()
	if what, err = catalogOf(what.Models).Beside(ctx, what); err != nil {
		return imported{}, err
	}
	if dry {
		return tryImport(ctx, what, dir)
	}
	if err := dir.Make(); err != nil {
		return imported{}, err
	}
	done, err := bring(ctx, what)
	if errors.Is(err, context.Canceled) {
		return imported{}, errors.New("interrupted: nothing was imported")
	}
	if done.Model != nil { // a server that runs looks at the disk for a model that it doesn't know, so "lmcaddy ls" has it at once
		_ = client.OnSocket(dir.Socket()).GetWithin(ctx, 5*time.Second, "/api/v0/models/"+url.PathEscape(*done.Model), nil)
	}
	return done, err
}

func bring(ctx context.Context, what catalog.Import) (imported, error) {
	models := catalogOf(what.Models)
	path, err := models.Import(ctx, what)
	if err != nil {
		return imported{}, err
	}
	done := imported{Path: path, Done: true}
	list, err := models.Models(ctx)
	for _, m := range list {
		if m.Path == path {
			done.Model = &m.Key
		}
	}
	return done, err
}

// tryImport finds out what an import would do, by importing a link into an empty folder.
func tryImport(ctx context.Context, what catalog.Import, dir home.Dir) (imported, error) {
	empty, err := os.MkdirTemp("", "lmcaddy-import-")
	if err != nil {
		return imported{}, err
	}
	defer func() { _ = os.RemoveAll(empty) }()
	what.Models, what.How = empty, catalog.SymLink
	would, err := bring(ctx, what)
	if err != nil {
		return imported{}, err
	}
	rel, err := filepath.Rel(empty, would.Path)
	if err != nil {
		return imported{}, err
	}
	would.Path, would.Done = filepath.Join(dir.Models(), rel), false
	if _, err := os.Lstat(would.Path); err == nil {
		return imported{}, &catalog.ImportError{
			Source: what.Source,
			Reason: would.Path + " already exists; remove it first, or choose another publisher or name",
		}
	}
	return would, nil
}

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
