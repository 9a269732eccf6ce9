package server

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
