// Package atomicfile replaces files as a whole.
package atomicfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// TempSuffix ends the names of temporary files. A crash may leave one behind.
const TempSuffix = ".tmp"

// Write replaces the named file below root with what write writes. A reader, or a process that starts after a crash, sees
// either the old content or the new, never a part of it: the data is flushed to disk before the file is renamed. mode is the
// permission of the new file, before the umask. On error the old file is left as it was.
func Write(root *os.Root, name string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	// The name doesn't begin with that of the file, which may be as long as a name can be.
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".lmcaddy-%016x%s", rand.Uint64(), TempSuffix)) //nolint:gosec // not a secret
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	buffered := bufio.NewWriterSize(file, 64<<10)
	if err = write(buffered); err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return root.Rename(temp, name)
}

// WriteFile is like [Write] for a path that needn't stay below a root.
func WriteFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return Write(root, filepath.Base(path), mode, write)
}

// Text writes a text.
func Text[T ~string | ~[]byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write([]byte(text))
		return err
	}
}

// JSON writes a value as indented JSON.
func JSON(value any) func(io.Writer) error {
	return func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(value)
	}
}
