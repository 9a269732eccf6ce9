package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// RemoveError says why a model's files may not be removed.
type RemoveError struct {
	Key    string
	Reason string // with what to do about it
}

func (e *RemoveError) Error() string {
	return fmt.Sprintf("The model %s can't be removed: %s.", e.Key, e.Reason)
}

// Remove deletes a model from the models folder: its file and all parts, its projector and drafter unless another model may use them, and
// folders that become empty. It deletes nothing outside of that folder: of a linked model it deletes the link. The caller must
// make sure that the model isn't in use. The error is a [*RemoveError], or that of the context or of the file system.
func (c *Catalog) Remove(ctx context.Context, models string, m Model) error {
	refuse := func(format string, args ...any) error { return &RemoveError{m.Key, fmt.Sprintf(format, args...)} }
	if m.IsRemote {
		return refuse("it is on a remote; delete it there if you want to")
	}
	rel, err := filepath.Rel(models, m.Path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return refuse("%s is not in lmcaddy's own folder of models; delete it there if you want to", m.Path)
	}
	if m.Layout != LayoutPlain {
		return refuse("%s is kept by another program; remove it with that program", m.Path)
	}
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	root, err := os.OpenRoot(models)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	names, err := c.removable(root, models, rel, m)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", m.Key, err)
		}
		removeEmpty(root, filepath.Dir(name))
	}
	return c.Refresh(ctx)
}

// removable returns the paths to remove for a model, relative to root: its files, beginning with the one that identifies it, or
// the link that leads to them.
func (c *Catalog) removable(root *os.Root, models, rel string, m Model) ([]string, error) {
	all := c.last.Load().models
	parts := strings.Split(rel, string(filepath.Separator))
	for i := 1; i < len(parts); i++ {
		link := filepath.Join(parts[:i]...)
		if info, err := root.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		dir := filepath.Join(models, link)
		for _, o := range all {
			if rel, err := filepath.Rel(dir, o.Path); err == nil && filepath.IsLocal(rel) && o.Path != m.Path {
				return nil, &RemoveError{m.Key, fmt.Sprintf("its folder %s is a link, and %s exists, too; "+
					"remove the link by hand if you want neither", dir, o.Key)}
			}
		}
		return []string{link}, nil
	}
	if m.Format == FormatMLX {
		names := []string{filepath.Join(rel, mlx.ConfigFile)}
		entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(rel))
		for _, e := range entries {
			if !e.IsDir() && e.Name() != mlx.ConfigFile && !filename.IsGGUF(e.Name()) {
				names = append(names, filepath.Join(rel, e.Name()))
			}
		}
		return names, err
	}
	names := []string{rel}
	for _, path := range filename.OtherParts(rel) {
		if _, err := root.Lstat(path); err == nil {
			names = append(names, path)
		}
	}
	for _, companion := range c.last.Load().companions {
		isLoaded := companion.Role == filename.Projector || companion.Role == filename.Drafter
		isItsOwn := isLoaded && slices.Equal(companion.Of, []string{m.Key})
		if p, err := filepath.Rel(models, companion.Path); isItsOwn && err == nil && filepath.IsLocal(p) {
			names = append(names, p)
		}
	}
	return names, nil
}

// removeEmpty removes a folder and its parents while they are empty, but not the root.
func removeEmpty(root *os.Root, dir string) {
	for ; dir != "." && dir != ""; dir = filepath.Dir(dir) {
		if root.Remove(dir) != nil {
			return
		}
	}
}
