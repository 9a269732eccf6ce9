package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// Options says what to write.
type Options struct {
	Header Header
	// Database is a copy of the database, which nobody changes; empty if there is none.
	Database string
	// Progress is called with the number of bytes read so far. It may be nil.
	Progress func(bytes int64)
}

// Written says what an archive has in it.
type Written struct {
	Files []Sum `json:"files"`
	// LeftOut are the paths of files that should be in it and can't be: other systems don't allow their names, or they are links to
	// nothing.
	LeftOut []string `json:"left_out"`
}

// Write writes the archive of a home. The home may be in use; the files are read one after the other, except for the database.
func Write(ctx context.Context, dir home.Dir, o Options, to io.Writer) (Written, error) {
	packed, err := zstd.NewWriter(to)
	if err != nil {
		return Written{}, err
	}
	w := &writer{ctx: ctx, tar: tar.NewWriter(packed), progress: o.Progress, said: Written{Files: []Sum{}, LeftOut: []string{}}}
	o.Header.Format = Format
	err = w.json(headerName, o.Header)
	if err == nil {
		err = w.home(dir, o)
	}
	if err == nil {
		err = w.json(sumsName, sums{w.said.Files})
	}
	if err == nil {
		err = w.tar.Close()
	}
	return w.said, errors.Join(err, packed.Close())
}

type writer struct {
	ctx      context.Context
	tar      *tar.Writer
	said     Written
	read     int64
	progress func(int64)
}

// advance notes how many bytes were read.
func (w *writer) advance(bytes int) {
	if w.read += int64(bytes); w.progress != nil {
		w.progress(w.read)
	}
}

// json writes an entry of the archive's own.
func (w *writer) json(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}); err != nil {
		return err
	}
	_, err = w.tar.Write(text)
	return err
}

func (w *writer) home(dir home.Dir, o Options) error {
	if o.Database != "" {
		if err := w.file(o.Database, database); err != nil {
			return err
		}
	}
	for _, name := range replaced {
		if name == database {
			continue
		}
		if err := w.tree(filepath.Join(string(dir), name), name); err != nil {
			return err
		}
	}
	selected, err := selectedIn(dir.Runtimes())
	if err != nil {
		return err
	}
	for _, file := range selected {
		if err := w.file(file, "runtimes/"+filepath.Base(file)); err != nil {
			return err
		}
	}
	if o.Header.Models {
		return w.tree(dir.Models(), "models")
	}
	return nil
}

// selectedIn returns the files in a folder that name selected engines. The folder's path may have any characters in it, so it
// can't be part of a pattern.
func selectedIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "selected") && e.Type().IsRegular() {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, err
}

// tree writes a file, or what is in a folder. Links are followed: what they lead to isn't on another machine. Hidden files and
// unfinished downloads are left out, and so is what has disappeared meanwhile, and a link to a folder that it is in.
func (w *writer) tree(file, name string, within ...fs.FileInfo) error {
	info, err := os.Stat(file)
	_, isLink := os.Readlink(file)
	switch {
	case slices.Contains(notKept, name):
		return nil
	case err != nil && isLink == nil && !errors.Is(err, fs.ErrPermission):
		w.said.LeftOut = append(w.said.LeftOut, file)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return w.file(file, name)
	case !info.IsDir() || slices.ContainsFunc(within, func(outer fs.FileInfo) bool { return os.SameFile(outer, info) }):
		return nil
	}
	entries, err := os.ReadDir(file)
	if err != nil {
		return err
	}
	for _, e := range entries {
		isUnfinished := strings.HasSuffix(e.Name(), ".part") || strings.HasSuffix(e.Name(), ".part.json")
		if strings.HasPrefix(e.Name(), ".") || isUnfinished {
			continue
		}
		if err := w.tree(filepath.Join(file, e.Name()), path.Join(name, e.Name()), append(within, info)...); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) file(file, name string) error {
	if err := mayContain(name); err != nil {
		w.said.LeftOut = append(w.said.LeftOut, file)
		return nil //nolint:nilerr // such as a model in a folder whose name lmcaddy wouldn't give it
	}
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: homePrefix + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	sum := sha256.New()
	from := &source{ctx: w.ctx, from: io.LimitReader(in, info.Size()), got: w.advance}
	n, err := io.Copy(io.MultiWriter(w.tar, sum), from)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if n < info.Size() {
		return fmt.Errorf("%s became shorter while it was read: run the backup again", file)
	}
	w.said.Files = append(w.said.Files, Sum{name, n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}
