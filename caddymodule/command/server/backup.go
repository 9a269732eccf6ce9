package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/backup"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// saved is what `lmcaddy backup --json` prints.
type saved struct {
	File string `json:"file"`
	Size int64  `json:"size_bytes"`
	backup.Header
	backup.Written
}

// standardStream is the FILE that stands for standard output, or for standard input.
const standardStream = "-"

// DefineBackup defines `lmcaddy backup`, which works on the home folder, with a server running or not.
func DefineBackup(cmd *cobra.Command) {
	cmd.Long = `Writes the state of the home folder to a new file: conversations, tokens and usage, mcp.json, certificates, a
Caddyfile in the home, and which engine is selected. The server may be running. Models are only included with --models, engines never:
"lmcaddy runtime get" downloads them. "lmcaddy restore" reads the file. The FILE - is standard output.

The file isn't encrypted, and contains conversations and the private keys of certificates. Only you can read it (mode
0600). With "store postgres", conversations and tokens are in PostgreSQL: back them up with pg_dump.`
	cmd.Example = `  lmcaddy backup lmcaddy.tar.zst
  lmcaddy backup --models everything.tar.zst`
	cmd.Args = cobra.ExactArgs(1)
	models := cmd.Flags().Bool("models", false, "include the files in models/, also those that are linked there")
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := kit.Interruptible(cmd)
		defer stop()
		if args[0] == standardStream && *asJSON {
			return errors.New("--json prints to standard output, where the backup goes: name a file for one of them")
		}
		s, err := save(ctx, cmd, args[0], *models)
		switch {
		case errors.Is(err, context.Canceled):
			return errors.New("interrupted: no backup was written")
		case err != nil:
			return explainSpace(err)
		}
		if len(s.LeftOut) > 0 {
			terminal.Printf(cmd.ErrOrStderr(),
				"Not in the backup, since not every system allows such names, or links lead nowhere: %q\n", s.LeftOut)
		}
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), s)
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "It has conversations and private keys in it, unencrypted: keep it where only you can read it.")
		name, out := s.File, cmd.OutOrStdout()
		if s.File == standardStream {
			name, out = "standard output", cmd.ErrOrStderr()
		}
		_, err = terminal.Printf(out, "%s: %s, %s\n", name, kit.Count(len(s.Files), "file"), kit.Size(s.Size))
		return err
	}
}

// explainSpace says what to do about a full disk.
func explainSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: free some space, or choose another disk", err)
	}
	return err
}

// save writes a backup to a file, or to standard output.
func save(ctx context.Context, cmd *cobra.Command, file string, models bool) (s saved, err error) {
	dir, err := home.FromEnvironment()
	if err != nil {
		return s, err
	}
	if _, err := os.Stat(string(dir)); err != nil {
		return s, fmt.Errorf("there is no home folder %s to back up: choose another with LMCADDY_HOME", dir)
	}
	s.File = file
	switch {
	case file != standardStream:
		s.File = home.Absolute(file)
		err = checkTarget(dir, s.File)
	case terminal.Is(cmd.OutOrStdout()):
		err = errors.New("a backup isn't for the terminal: name a file, or send standard output to one")
	}
	if err != nil {
		return s, err
	}
	// Without a server the home is locked, so that none begins meanwhile, and so that an interrupted restore is completed first.
	lock, err := node.Reserve(dir)
	if err == nil {
		defer func() { err = errors.Join(err, lock.Release()) }()
	} else if !errors.As(err, new(*node.InUse)) {
		return s, err
	}
	work, err := os.MkdirTemp(dir.Run(), backup.WorkPrefix) // for the copy of the database; only this user can read it
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	s.Header = backup.Header{
		Version: cmp.Or(caddy.CustomVersion, "development"), Created: time.Now().UTC().Truncate(time.Second),
		Models: models,
	}
	options := backup.Options{}
	if usesPostgres(caddy.ConfigAutosavePath) {
		fmt.Fprintln(cmd.ErrOrStderr(), "The last configuration keeps conversations, tokens and usage in PostgreSQL. "+
			"Those aren't in this backup: back them up with pg_dump.")
	}
	copied := filepath.Join(work, "lmcaddy.db")
	s.Schema, err = store.Copy(ctx, dir.Database(), copied)
	switch {
	case err == nil:
		options.Database = copied
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	}
	options.Header = s.Header
	err = s.write(ctx, cmd, dir, options)
	s.Format = backup.Format
	return s, err
}

// write writes the archive, and shows how far it is.
func (s *saved) write(ctx context.Context, cmd *cobra.Command, dir home.Dir, options backup.Options) error {
	line := terminal.NewProgress(cmd.ErrOrStderr())
	defer line.End()
	began := time.Now()
	options.Progress = func(bytes int64) {
		if time.Since(began) > time.Second { // most backups are quick
			line.Update("backup", "%s read", kit.Size(bytes))
		}
	}
	write := func(w io.Writer) (err error) {
		count := &counter{to: w}
		s.Written, err = backup.Write(ctx, dir, options, count)
		s.Size = count.n
		if err == nil && len(s.Files) == 0 {
			err = fmt.Errorf("the home folder %s has nothing to back up: choose another with LMCADDY_HOME", dir)
		}
		return err
	}
	if s.File == standardStream {
		return write(cmd.OutOrStdout())
	}
	return atomicfile.WriteFile(s.File, 0o600, write)
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// checkTarget returns an error if a backup of a home can't be written to a path.
func checkTarget(dir home.Dir, file string) error {
	switch info, err := os.Lstat(file); {
	case err != nil:
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it, such as %s", file, filepath.Join(file, "lmcaddy.tar.zst"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s isn't a file: name a new one, or - for standard output", file)
	default:
		return fmt.Errorf("%s already exists: choose another name, or remove it first", file)
	}
	folder := filepath.Dir(file)
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir():
		return fmt.Errorf("there is no folder %s: make it first, or choose another", folder)
	case err != nil:
		return err
	}
	realFolder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	realHome, err := filepath.EvalSymlinks(string(dir))
	if err != nil {
		return err
	}
	within, err := filepath.Rel(realHome, filepath.Join(realFolder, filepath.Base(file)))
	if err == nil && filepath.IsLocal(within) && backup.IsOwn(within) {
		return fmt.Errorf("%s is where lmcaddy keeps files of its own: choose another folder or name", file)
	}
	return nil //nolint:nilerr // a path that isn't relative to the home is outside of it
}
