package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// How is the way of importing a file.
type How string

// The ways of importing.
const (
	Move     How = "move"     // the file is only at its new path
	Copy     How = "copy"     // the file exists twice
	HardLink How = "hardlink" // the file has two names; on one file system only
	SymLink  How = "symlink"  // the new path is a link to the file
)

// Import describes an import.
type Import struct {
	Source          string // a GGUF file; the first part of a split model
	Models          string // the models folder
	Publisher, Repo string // the destination; empty: "local", and the file's name without its quantization
	How             How
}

// ImportError says why a file can't be imported, and what to do about it.
type ImportError struct{ Source, Reason string }

func (e *ImportError) Error() string {
	return fmt.Sprintf("%s can't be imported: %s.", e.Source, e.Reason)
}

// Import puts a file, with all its parts, into the models folder, as <publisher>/<repo>/<file>, and returns its new path. It never replaces
// a file, and undoes everything if it fails. The error is an [*ImportError], or that of the context or of the file system.
func (c *Catalog) Import(ctx context.Context, i Import) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", &ImportError{i.Source, fmt.Sprintf(format, args...)}
	}
	source, err := filepath.Abs(i.Source)
	if err != nil {
		return "", err
	}
	paths, header, err := importable(source)
	if err != nil {
		return refuse("%v", err)
	}
	if i.Publisher == "" {
		i.Publisher = local
	}
	if i.Repo == "" {
		name, _ := filename.TrimQuantization(filename.Stem(source)) // which may differ from that of the header
		i.Repo = safe(withoutQuantization(cmp.Or(name, filename.Stem(source)), header.model.Quantization.Name))
	}
	for _, name := range []string{i.Publisher, i.Repo} {
		if filename.CheckFolder(name) != nil {
			return refuse("%q can't be a folder's name, which has letters, digits, and . _ - between them: choose another, "+
				"as in --repo %s/%s",
				name, safe(i.Publisher), safe(i.Repo))
		}
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && i.How == Move && info.Mode()&fs.ModeSymlink != 0 {
			return refuse("%s is a link, and what it points to belongs elsewhere; copy or link it instead of moving it", path)
		}
	}
	if err := os.MkdirAll(i.Models, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(i.Models, i.Publisher, i.Repo)
	for _, path := range paths {
		to := filepath.Join(dir, filepath.Base(path))
		if _, err := os.Lstat(to); err == nil {
			return refuse("%s already exists; remove it first, or choose another publisher or name", to)
		}
	}
	if err := i.bring(ctx, paths, dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(source)), c.Refresh(ctx)
}

// safe replaces everything that isn't allowed in the name of a folder.
func safe(name string) string {
	clean := strings.Trim(unsafeSigns.ReplaceAllString(name, "-"), "-._")
	if filename.CheckFolder(clean) != nil {
		return "name"
	}
	return clean
}

var unsafeSigns = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Beside chooses the destination of a companion, such as a projector, if none is given: the folder of the one model that the companion's
// name belongs to. Most are useless in a folder of their own. The error is an [*ImportError], or the context's.
func (c *Catalog) Beside(ctx context.Context, i Import) (Import, error) {
	_, header, err := importable(i.Source)
	role := header.model.Role
	if err != nil || role == "" || i.Repo != "" {
		return i, nil //nolint:nilerr // Import reports it
	}
	models, err := c.Models(ctx)
	if err != nil {
		return i, err
	}
	folders := map[string]bool{}
	for _, m := range models {
		rel, err := filepath.Rel(i.Models, filepath.Dir(m.Path))
		publisher, repo, ok := strings.Cut(filepath.ToSlash(rel), "/")
		if name := filename.CompanionName(filename.Stem(i.Source)); err != nil || !ok || strings.Contains(repo, "/") || publisher == ".." ||
			filename.ModelName(filename.Stem(m.Path)) != name && withoutFormat(Normal(repo)) != name {
			continue
		}
		folders[rel] = true
		i.Publisher, i.Repo = publisher, repo
	}
	if len(folders) != 1 {
		return i, &ImportError{i.Source, fmt.Sprintf("it is a %s, which belongs beside its model, and its name doesn't say which that "+
			"is: name the model's folder, as in --repo publisher/name", role)}
	}
	return i, nil
}

func importable(source string) ([]string, header, error) {
	if !filename.IsGGUF(source) {
		return nil, header{}, errors.New("it is not a GGUF file: its name has to end in .gguf")
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, header{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, header{}, errors.New("it is not a file")
	}
	paths := []string{source}
	if filename.IsLaterPart(source) {
		return nil, header{}, errors.New("it is a part of a split model; import the first part, and the others come along")
	}
	for _, path := range filename.OtherParts(source) {
		paths = append(paths, path)
	}
	h := readHeader(&found{path: source, size: info.Size(), changed: info.ModTime(), format: FormatGGUF})
	if role := h.model.Role; h.model.Err == nil && role != "" && role != filename.Projector && role != filename.Drafter {
		h.model.Err = errors.New("it is neither a model, nor a projector or a drafter of one")
	}
	return paths, h, h.model.Err
}

// bring puts all files into a folder, or none.
func (i *Import) bring(ctx context.Context, paths []string, dir string) (err error) {
	root, err := os.OpenRoot(i.Models) // a publisher's folder may be a link, which must not lead out
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	rel, err := filepath.Rel(i.Models, dir)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(rel, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	var done []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range done {
			there := filepath.Join(dir, filepath.Base(path))
			if i.How == Move {
				err = errors.Join(err, moveFile(context.WithoutCancel(ctx), there, path))
			} else {
				err = errors.Join(err, os.Remove(there))
			}
		}
		removeEmpty(root, rel)
	}()
	for _, path := range paths {
		if err := i.transfer(ctx, path, filepath.Join(dir, filepath.Base(path))); err != nil {
			return err
		}
		done = append(done, path)
	}
	return nil
}

func (i *Import) transfer(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch i.How {
	case Move:
		return moveFile(ctx, from, to)
	case Copy:
		return copyFile(ctx, from, to)
	case SymLink:
		return os.Symlink(from, to)
	case HardLink:
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			return err
		}
		if err = os.Link(real, to); errors.Is(err, syscall.EXDEV) {
			return &ImportError{from, "it is on another file system, where a hard link can't lead; copy it, or use a symbolic link"}
		}
		return err
	default:
		return &ImportError{from, fmt.Sprintf("%q is not a way to import: use move, copy, hardlink or symlink", i.How)}
	}
}

// moveFile moves a file. It never replaces another.
func moveFile(ctx context.Context, from, to string) error {
	if os.Link(from, to) == nil { // unlike os.Rename, it replaces nothing
		return os.Remove(from)
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	if os.Rename(from, to) == nil { // the file system has no links
		return nil
	}
	if err := copyFile(ctx, from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// copyChunk is the number of bytes copied between checks of the context.
const copyChunk = 64 << 20

// copyFile copies a file to a new path, where it appears when it is complete. It never replaces another.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".importing-*")
	if err != nil {
		return err
	}
	defer func() {
		if failed := os.Remove(out.Name()); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(out, in, copyChunk)
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.Join(out.Chmod(0o644), out.Sync())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err = os.Link(out.Name(), to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil { // the file system has no links
		return fs.ErrExist
	}
	return os.Rename(out.Name(), to)
}
