package models

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
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
