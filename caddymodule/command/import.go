package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

// defineImport defines `lmcaddy import`, which works on the home folder, with a server running or not.
func defineImport(cmd *cobra.Command) {
	cmd.Long = `Moves a GGUF file, with all its parts, to $LMCADDY_HOME/models/<publisher>/<repo>, and prints the model's key.
A running server finds the model within seconds. No file is ever replaced.

Without --repo the publisher is "local", and the repo is the file's name without its quantization. A projector
(mmproj-….gguf) goes next to the model that its name indicates.`
	cmd.Args = cobra.ExactArgs(1)
	cmd.SilenceUsage = true
	flags := cmd.Flags()
	repo := flags.String("repo", "", "the publisher/repo to import it as")
	dry := flags.Bool("dry-run", false, "only print what would be done")
	ways := map[catalog.How]*bool{
		catalog.Copy:     flags.BoolP("copy", "c", false, "copy the file instead of moving it"),
		catalog.SymLink:  flags.BoolP("link", "l", false, "make a symbolic link instead of moving the file"),
		catalog.HardLink: flags.BoolP("hard-link", "L", false, "make a hard link, on the same file system, instead of moving the file"),
	}
	cmd.MarkFlagsMutuallyExclusive("copy", "link", "hard-link")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
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
		ctx, stop := interruptible(cmd)
		defer stop()
		return importFile(ctx, cmd, what, *dry)
	}
}

func importFile(ctx context.Context, cmd *cobra.Command, what catalog.Import, dry bool) error {
	dir, err := home.FromEnvironment()
	if err != nil {
		return err
	}
	what.Models = dir.Models()
	if what, err = catalogOf(what.Models).Beside(ctx, what); err != nil {
		return err
	}
	if dry {
		return describeImport(ctx, cmd, what, dir)
	}
	if err := dir.Make(); err != nil {
		return err
	}
	path, key, err := bring(ctx, what)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was imported")
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), path)
	if key == "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "It is a projector, not a model: the models in its folder use it to read images.")
		return nil
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
	return err
}

// bring imports a file, and returns its new path and the key of its model, which is empty for a projector.
func bring(ctx context.Context, what catalog.Import) (path, key string, err error) {
	models := catalogOf(what.Models)
	if path, err = models.Import(ctx, what); err != nil {
		return "", "", err
	}
	list, err := models.Models(ctx)
	for _, m := range list {
		if m.Path == path {
			key = m.Key
		}
	}
	return path, key, err
}

// describeImport prints what an import would do. It finds out by importing a link into an empty folder.
func describeImport(ctx context.Context, cmd *cobra.Command, what catalog.Import, dir home.Dir) error {
	how := map[catalog.How]string{catalog.Move: "moved", catalog.Copy: "copied", catalog.SymLink: "linked", catalog.HardLink: "hard-linked"}[what.How]
	empty, err := os.MkdirTemp("", "lmcaddy-import-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(empty) }()
	what.Models, what.How = empty, catalog.SymLink
	path, key, err := bring(ctx, what)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(empty, path)
	if err != nil {
		return err
	}
	there := filepath.Join(dir.Models(), rel)
	if _, err := os.Lstat(there); err == nil {
		return &catalog.ImportError{Source: what.Source, Reason: there + " already exists; remove it first, or choose another publisher or name"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s would be %s to %s.\n", what.Source, how, there)
	if key == "" {
		return nil
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
	return err
}
