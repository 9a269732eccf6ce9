package runtimes

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// unpack extracts a .zip or .tar.gz into a folder. It rejects an archive with an entry or link that leads out of the folder;
// the folder may then contain a part of it.
func unpack(ctx context.Context, archive, dir string) error {
	root, err := os.OpenRoot(dir) // keeps writes inside, whatever links the archive contains
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	defer func() { _ = root.Close() }()
	u := &unpacker{ctx: ctx, root: root}
	switch {
	case strings.HasSuffix(archive, ".zip"):
		err = u.zip(archive)
	case strings.HasSuffix(archive, ".tar.gz"):
		err = u.tarGzip(archive)
	default:
		err = errors.New("neither a .zip nor a .tar.gz")
	}
	// Every link is followed when all exist, because one may lead out by way of another. os.Root doesn't follow these, nor absolute ones.
	for _, name := range u.links {
		// One that leads to nothing is harmless.
		if _, bad := u.root.Stat(name); err == nil && bad != nil && !errors.Is(bad, fs.ErrNotExist) {
			err = fmt.Errorf("refused, because the link %q leads outside the folder: %w", name, bad)
		}
	}
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(archive), err)
	}
	return nil
}

type unpacker struct {
	ctx   context.Context //nolint:containedctx // used only during unpack
	root  *os.Root
	links []string
}

func (u *unpacker) tarGzip(archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	reader := tar.NewReader(plain)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.tarEntry(header, reader); err != nil {
			return err
		}
	}
}

func (u *unpacker) tarEntry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := localName(header.Name)
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return u.file(name, header.FileInfo().Mode(), content)
	case tar.TypeSymlink:
		return u.link(name, header.Linkname)
	case tar.TypeLink:
		target, err := localName(header.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(target, name)
	default:
		return fmt.Errorf("%s is neither a file, a folder nor a link", header.Name)
	}
}

func (u *unpacker) zip(archive string) error {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	for _, entry := range reader.File {
		if err := u.zipEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zipEntry(entry *zip.File) error {
	name, err := localName(entry.Name)
	if err != nil {
		return err
	}
	if entry.Mode().IsDir() {
		return u.root.MkdirAll(name, 0o755)
	}
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	switch entry.Mode().Type() {
	case 0:
		return u.file(name, entry.Mode(), content)
	case fs.ModeSymlink:
		target, err := io.ReadAll(io.LimitReader(content, 4096))
		if err != nil {
			return err
		}
		return u.link(name, string(target))
	default:
		return fmt.Errorf("%s is neither a file, a folder nor a link", entry.Name)
	}
}

// localName converts an entry's name into a path of this system, if it stays in the folder.
func localName(name string) (string, error) {
	local := filepath.FromSlash(path.Clean(name))
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("refused, because %q leads outside the folder", name)
	}
	return local, nil
}

func (u *unpacker) file(name string, mode fs.FileMode, content io.Reader) (err error) {
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, &interruptible{u.ctx, content}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return file.Sync() // the rename that installs the folder must not get to disk first
}

func (u *unpacker) link(name, target string) error {
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	u.links = append(u.links, name)
	return u.root.Symlink(target, name)
}

// interruptible is a Reader that fails when its context ends.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // used only during one copy
	from io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// moveLibraries moves the shared libraries in a tree into the folder where the engine looks for them.
func moveLibraries(from, to string) error {
	var libraries []string
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := entry.Name()
		if strings.Contains(name, ".so") || strings.HasSuffix(name, ".dll") || strings.HasSuffix(name, ".dylib") {
			libraries = append(libraries, path)
		}
		return nil
	})
	for _, library := range libraries {
		err = errors.Join(err, os.Rename(library, filepath.Join(to, filepath.Base(library))))
	}
	if err != nil {
		return fmt.Errorf("putting CUDA's libraries beside the engine: %w", err)
	}
	return nil
}

const (
	stagingPrefix = ".staging-"
	stagingLock   = "lock"  // inside a staging folder; locked while its owner lives
	storeLock     = ".lock" // inside the store: see newStaging
	lockRetry     = 20 * time.Millisecond
)

// staging is a folder for preparing an installation. It is inside the store, so that it can be installed by a rename.
type staging struct {
	path string
	lock *flock.Flock
}

// newStaging creates a staging folder, after removing stale ones. It holds the store's lock, so that no other process takes a new
// folder, which isn't locked yet, for a stale one.
func (s *Store) newStaging(ctx context.Context) (*staging, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the runtimes folder: %w", err)
	}
	store := flock.New(filepath.Join(s.dir, storeLock))
	if _, err := store.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking the runtimes folder: %w", err)
	}
	defer func() { _ = store.Close() }()
	s.removeUnlocked()

	path, err := os.MkdirTemp(s.dir, stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a staging folder: %w", err)
	}
	stage := &staging{path: path, lock: flock.New(filepath.Join(path, stagingLock))}
	if locked, err := stage.lock.TryLock(); err != nil || !locked {
		stage.discard()
		return nil, fmt.Errorf("locking the staging folder: %w", cmp.Or(err, errors.New("it is locked")))
	}
	return stage, nil
}

// folder creates an empty folder in the staging folder. It replaces an existing one.
func (st *staging) folder(name string) (string, error) {
	path := filepath.Join(st.path, name)
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("staging: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("staging: %w", err)
	}
	return path, nil
}

func (st *staging) discard() {
	// Unlock first, because Windows can't delete an open file. What can't be deleted now is removed by the next Get or List.
	_ = st.lock.Close()
	_ = os.RemoveAll(st.path)
}

// removeStale removes staging folders whose owner has died. It leaves a store alone that it can't write, or that another process
// is preparing.
func (s *Store) removeStale() {
	if left, _ := filepath.Glob(filepath.Join(s.dir, stagingPrefix+"*")); len(left) == 0 {
		return
	}
	store := flock.New(filepath.Join(s.dir, storeLock))
	defer func() { _ = store.Close() }()
	if locked, err := store.TryLock(); err != nil || !locked {
		s.log.Debug("stale staging folders are left alone", "error", err)
		return
	}
	s.removeUnlocked()
}

// removeUnlocked does the work of removeStale. The store's lock is held.
func (s *Store) removeUnlocked() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.log.Debug("looking for stale staging folders", "error", err)
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), stagingPrefix) {
			continue
		}
		path := filepath.Join(s.dir, entry.Name())
		owner := flock.New(filepath.Join(path, stagingLock))
		locked, err := owner.TryLock()
		_ = owner.Close()
		if err != nil || !locked {
			continue // its Get is running
		}
		if err := os.RemoveAll(path); err != nil {
			s.log.Warn("removing what an interrupted get left", "folder", path, "error", err)
		}
	}
}
