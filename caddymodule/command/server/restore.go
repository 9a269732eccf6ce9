package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/backup"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// DefineRestore defines `lmcaddy restore`, which works on the home folder while no server runs on it.
func DefineRestore(cmd *cobra.Command) {
	cmd.Long = `Puts what "lmcaddy backup" has saved into the home folder. The server that runs on the home has to be stopped first.
The whole file is checked before anything is changed. Models and engines that are in the home stay there.

A home that has conversations, certificates or a configuration already is refused, and so is one where a model's file isn't
the backup's; with --force these are replaced, and gone. If the restore is interrupted, the home is either as it was, or the
next command completes it. The FILE - is
standard input.`
	cmd.Example = `  lmcaddy restore lmcaddy.tar.zst
  LMCADDY_HOME=/srv/lmcaddy lmcaddy restore lmcaddy.tar.zst`
	cmd.Args = cobra.ExactArgs(1)
	force := cmd.Flags().Bool("force", false, "replace what the home has")
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := kit.Interruptible(cmd)
		defer stop()
		dir, err := home.FromEnvironment()
		if err != nil {
			return err
		}
		restored, err := restore(ctx, cmd, dir, args[0], *force)
		switch {
		case errors.Is(err, context.Canceled):
			return errors.New("interrupted: nothing was changed")
		case err != nil:
			return explainSpace(err)
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), restored)
		}
		for _, name := range restored.Engines {
			if _, err := os.Stat(filepath.Join(dir.Runtimes(), name)); err != nil {
				get := "lmcaddy runtime get llama.cpp"
				if strings.HasPrefix(name, "mlx-lm") {
					get = "lmcaddy runtime get mlx-lm"
				}
				terminal.Printf(cmd.ErrOrStderr(), "The engine %s isn't installed here: %s\n", name, kit.InWords(get))
			}
		}
		_, err = terminal.Printf(cmd.OutOrStdout(), "Restored %s of %s to %s.\n", kit.Count(restored.Files, "file"),
			restored.Header.Created.Local().Format("2 January 2006, 15:04"), dir)
		return err
	}
}

func restore(ctx context.Context, cmd *cobra.Command, dir home.Dir, file string, force bool) (r backup.Restored, err error) {
	if owner := dir.OtherThanRoot(); owner != "" {
		return r, fmt.Errorf("the home folder %s belongs to %s, who couldn't read what root writes there: "+
			"type \"sudo -u %s LMCADDY_HOME=%s lmcaddy restore - < FILE\"", dir, owner, owner, dir)
	}
	in, err := openBackup(ctx, cmd, file)
	if err != nil {
		return r, err
	}
	defer in.Close()
	lock, err := node.Reserve(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if there := backup.Holds(dir); len(there) > 0 && !force {
		return r, fmt.Errorf("the home folder %s isn't empty: it has %s. Choose another with LMCADDY_HOME, "+
			"or replace what it has with --force", dir, strings.Join(there, ", "))
	}
	return backup.Restore(ctx, dir, bufio.NewReaderSize(in, 1<<20), backup.How{Check: checkDatabase, Replaces: force})
}

func openBackup(ctx context.Context, cmd *cobra.Command, file string) (io.ReadCloser, error) {
	if file == standardStream {
		if terminal.Is(cmd.InOrStdin()) {
			return nil, errors.New("a backup isn't read from the terminal: name its file, or send it to standard input")
		}
		return patient(ctx, func() (io.Reader, error) { return cmd.InOrStdin(), nil }), nil
	}
	file = home.Absolute(file)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s: name one that \"lmcaddy backup\" has written", file)
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: name a file that \"lmcaddy backup\" has written", file)
	case err == nil && !info.Mode().IsRegular(): // such as a pipe
		return patient(ctx, func() (io.Reader, error) { return os.Open(file) }), nil
	}
	return os.Open(file)
}

// patient reads what may never come, until ctx ends. What is being opened or read then goes on in the background.
func patient(ctx context.Context, open func() (io.Reader, error)) io.ReadCloser {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	go func() {
		from, err := open()
		if err == nil {
			_, err = io.Copy(in, from)
		}
		_ = in.CloseWithError(err)
	}()
	return out
}

// checkDatabase returns an error unless this program can use a database.
func checkDatabase(ctx context.Context, database string) error {
	schema, err := store.SchemaOf(ctx, database)
	if err != nil {
		return &backup.DamagedError{Err: err}
	}
	if schema > store.Schema() {
		return fmt.Errorf("a newer lmcaddy made the backup: its database has version %d, and this lmcaddy knows versions up to %d. "+
			"Nothing was changed", schema, store.Schema())
	}
	return nil
}
