package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// walSuffix ends the name of a database's write-ahead log.
const walSuffix = "-wal"

// makeFile makes a database that only its owner can read, unless there is one. SQLite's other files get the same mode. It doesn't open an
// existing file, because closing it would release the locks that this process may hold on it.
func makeFile(ctx context.Context, path string, log *slog.Logger) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	wal, _ := os.Stat(path + walSuffix) // first: another process makes the file before its log
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && wal != nil && wal.Size() > 0:
		return errors.New("the file is gone, but its write-ahead log is there, which may have the last changes. Put the file back, " +
			"or move the files with the endings -wal and -shm away to begin with an empty store")
	case errors.Is(err, fs.ErrNotExist):
		return makeDatabase(ctx, path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a file. Name a file in a folder that lmcaddy may write to")
	case info.Size() == 0:
		return errors.New("the file is empty, which no store is: something has emptied it. Put a backup in its place, or delete it " +
			"to begin with an empty store")
	case info.Mode().Perm()&0o077 != 0:
		log.Warn("users other than its owner can read the stored conversations: chmod 600 prevents that",
			"file", path, "mode", info.Mode().Perm().String())
	}
	return nil
}

// makeDatabase makes an empty database, which appears at path with its header: a file without one has lost its content.
func makeDatabase(ctx context.Context, path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Close(); err != nil {
		return err
	}
	made := &sqliteFile{path: f.Name()}
	db, err := sql.Open("sqlite", made.uri("mode=rw", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := errors.Join(db.PingContext(ctx), db.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) { // another process was quicker
		return nil
	}
	return os.Rename(f.Name(), path) // there are no links on some file systems
}

// identify notes which files are open.
func (s *sqliteFile) identify() {
	s.opened = map[string]fs.FileInfo{}
	for _, path := range []string{s.path, s.path + walSuffix} {
		if info, err := os.Stat(path); err == nil {
			s.opened[path] = info
		}
	}
}

// displaced returns why what is written isn't kept: the open files aren't those at the path any more.
func (s *sqliteFile) displaced() error {
	for path, opened := range s.opened {
		var what string
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			what = "was deleted"
		case err != nil: // which says nothing about the open file
			continue
		case !os.SameFile(opened, info):
			what = "was replaced"
		case path == s.path && info.Size() == 0:
			what = "was emptied"
		default:
			continue
		}
		return unavailable{fmt.Errorf("the store %s: the file %s %s while lmcaddy was using it, so nothing can be written. "+
			"Stop lmcaddy, put the file or a backup in its place, and start it again", s.path, filepath.Base(path), what)}
	}
	return nil
}
