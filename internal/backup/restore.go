package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

// staging is the hidden folder for files that will be restored. There is one in the home, and one in models/, which may be on
// another disk, where a rename from the home wouldn't lead.
const (
	staging = ".restoring"
	planned = staging + "/plan.json"
)

// plan is what has to be done after it is written. All paths are in the home.
type plan struct {
	Remove []string `json:"remove"`
	Moves  []move   `json:"moves"`
}

type move struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Restored says what was restored.
type Restored struct {
	Header  Header   `json:"backup"`
	Files   int      `json:"files"`
	Engines []string `json:"engines"` // the engines that were selected, by the names of their runtimes
}

// How says how to restore.
type How struct {
	// Check checks the database of a backup, before anything is changed.
	Check func(ctx context.Context, database string) error
	// Replaces is true if a model's file may be replaced by one of another size.
	Replaces bool
}

// Restore replaces the state of a home by what is in an archive. The caller has locked the home. Models and engines that the
// archive doesn't have stay. On an error the home is as it was, unless it is a *[HalfwayError].
func Restore(ctx context.Context, dir home.Dir, from io.Reader, how How) (r Restored, err error) {
	a, err := open(ctx, from)
	if err != nil {
		return r, err
	}
	defer a.close()
	r.Header = a.header
	if err := tidy(dir); err != nil {
		return r, err
	}
	defer func() {
		if err != nil && !errors.As(err, new(*HalfwayError)) {
			err = errors.Join(err, tidy(dir))
		}
	}()
	names, err := stage(a, dir)
	if err != nil {
		return r, err
	}
	if len(names) == 0 {
		return r, &DamagedError{errors.New("no files are in it")}
	}
	if slices.Contains(names, database) {
		if err := how.Check(ctx, filepath.Join(string(dir), staging, database)); err != nil {
			return r, err
		}
	}
	r.Files = len(names)
	if r.Engines, err = selected(dir); err != nil {
		return r, err
	}
	if err := errors.Join(checkModels(dir, names, how.Replaces), checkReplaceable(dir)); err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if err := commit(dir, names); err != nil {
		return r, err
	}
	return r, Finish(dir)
}

// stage extracts the archive to the hidden folders.
func stage(a *archive, dir home.Dir) ([]string, error) {
	var roots [2]*os.Root
	for i, folder := range []string{string(dir), dir.Models()} {
		folder = filepath.Join(folder, staging)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		roots[i] = root
	}
	return a.extract(roots[0], roots[1])
}

// checkModels returns an error if a model would be written over a folder, or through a link, to somewhere else, or over another
// file unless that is wanted.
func checkModels(dir home.Dir, names []string, replaces bool) error {
	checked := map[string]bool{}
	for _, name := range names {
		if !strings.HasPrefix(name, "models/") {
			continue
		}
		for part := name; part != "models" && !checked[part]; part = path.Dir(part) {
			checked[part] = true
			at := filepath.Join(string(dir), filepath.FromSlash(part))
			info, err := os.Lstat(at)
			isRight := err == nil && (part == name && info.Mode().IsRegular() || part != name && info.IsDir())
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil && !isRight {
				return fmt.Errorf("%s is in the way of a model in the backup: move it away. Nothing was changed", at)
			}
			if err != nil || part != name || replaces {
				continue
			}
			staged, err := os.Stat(filepath.Join(dir.Models(), staging, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			if staged.Size() != info.Size() {
				return fmt.Errorf("%s is there already, and is another one than in the backup: move it away, "+
					"or replace it with --force. Nothing was changed", at)
			}
		}
	}
	return nil
}

// isRuntime matches the names of runtimes.
var isRuntime = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// selected returns the engines that the archive's home had selected.
func selected(dir home.Dir) ([]string, error) {
	engines := []string{}
	files, err := selectedIn(filepath.Join(string(dir), staging, "runtimes"))
	for _, file := range files {
		text, failed := os.ReadFile(file)
		if failed != nil {
			return nil, failed
		}
		name := strings.TrimSpace(string(text))
		if !isRuntime.MatchString(name) {
			return nil, &DamagedError{fmt.Errorf("%s in it names no engine", filepath.Base(file))}
		}
		engines = append(engines, name)
	}
	return engines, err
}

func commit(dir home.Dir, names []string) error {
	p := plan{Remove: slices.Concat(derived, replaced)}
	moved := map[string]bool{}
	for _, name := range names {
		first, _, _ := strings.Cut(name, "/")
		m := move{path.Join(staging, name), name}
		switch {
		case first == "models":
			m.From = path.Join("models", staging, name)
		case first == "runtimes":
			// An engine that isn't installed here can't be selected.
			text, err := os.ReadFile(filepath.Join(string(dir), staging, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(dir.Runtimes(), strings.TrimSpace(string(text)))); err != nil {
				continue
			}
		case first != name: // a folder is moved as a whole
			m = move{path.Join(staging, first), first}
		}
		if moved[m.To] {
			continue
		}
		moved[m.To] = true
		p.Moves = append(p.Moves, m)
	}
	if err := atomicfile.WriteFile(filepath.Join(string(dir), filepath.FromSlash(planned)), 0o600, atomicfile.JSON(p)); err != nil {
		return err
	}
	return syncPath(filepath.Join(string(dir), staging))
}

// HalfwayError means that a restore has begun and couldn't be completed. The next call of Finish goes on.
type HalfwayError struct{ Err error }

func (e *HalfwayError) Error() string {
	return fmt.Sprintf("the restore isn't complete: %v. Mend that; then the next command or server that uses the home completes it", e.Err)
}

func (e *HalfwayError) Unwrap() error { return e.Err }

// IsHalfway reports whether a restore of a home was interrupted after it had decided what to do.
func IsHalfway(dir home.Dir) bool {
	_, err := os.Lstat(filepath.Join(string(dir), filepath.FromSlash(planned)))
	return err == nil
}

// Finish completes a restore that was interrupted, or removes what it left behind if it had changed nothing yet, and the copies of the
// database that killed backups have left: they may have in them what has been deleted since. The caller has locked the home. A home
// without a restore is left alone.
func Finish(dir home.Dir) error {
	copies, _ := fs.Glob(os.DirFS(dir.Run()), WorkPrefix+"*") // the pattern is valid
	for _, name := range copies {
		_ = os.RemoveAll(filepath.Join(dir.Run(), name))
	}
	text, err := os.ReadFile(filepath.Join(string(dir), filepath.FromSlash(planned)))
	if errors.Is(err, fs.ErrNotExist) {
		return tidy(dir)
	}
	var p plan
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	for _, step := range p.steps(dir) {
		if err == nil {
			err = step()
		}
	}
	if err == nil {
		err = syncPath(string(dir))
	}
	if err == nil {
		err = tidy(dir)
	}
	if err != nil {
		return &HalfwayError{err}
	}
	return nil
}

// steps returns what to do, in order. A step that was done already does nothing: a file that isn't staged any more has been moved,
// and what is at its place is new.
func (p *plan) steps(dir home.Dir) []func() error {
	at := func(name string) string { return filepath.Join(string(dir), filepath.FromSlash(name)) }
	from := map[string]string{}
	for _, m := range p.Moves {
		from[m.To] = at(m.From)
	}
	var steps []func() error
	for _, name := range p.Remove {
		steps = append(steps, func() error {
			if successor, ok := from[name]; ok {
				if _, err := os.Lstat(successor); err != nil {
					return ifThere(err)
				}
			}
			return os.RemoveAll(at(name))
		})
	}
	for _, m := range p.Moves {
		steps = append(steps, func() error {
			if _, err := os.Lstat(at(m.From)); err != nil {
				return ifThere(err)
			}
			if err := os.MkdirAll(filepath.Dir(at(m.To)), 0o700); err != nil {
				return err
			}
			return rename(at(m.From), at(m.To))
		})
	}
	return steps
}

// rename moves a file, or a folder. A file is copied if the folder that it goes to is a link to another disk.
func rename(from, to string) error {
	err := os.Rename(from, to)
	info, gone := os.Lstat(from)
	if err == nil || gone != nil || !info.Mode().IsRegular() {
		return err
	}
	in, failed := os.Open(from)
	if failed != nil {
		return err
	}
	defer in.Close()
	failed = atomicfile.WriteFile(to, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
	if failed != nil {
		return errors.Join(err, failed)
	}
	return os.Remove(from)
}

// tidy removes the hidden folders, the plan first.
func tidy(dir home.Dir) error {
	return errors.Join(
		ifThere(os.Remove(filepath.Join(string(dir), filepath.FromSlash(planned)))),
		os.RemoveAll(filepath.Join(string(dir), staging)),
		os.RemoveAll(filepath.Join(dir.Models(), staging)),
	)
}

// ifThere is nil for the error of a file that doesn't exist.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Holds returns the state that a restore into this home would replace.
func Holds(dir home.Dir) []string {
	var there []string
	for _, name := range replaced {
		if _, err := os.Lstat(filepath.Join(string(dir), name)); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// syncFolder makes the names in a folder survive a power failure, on systems that have this for folders.
func syncFolder(root *os.Root, name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func syncPath(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(root, "."), root.Close())
}
