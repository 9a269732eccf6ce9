package warm

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"syscall"
)

const (
	stateSuffix  = ".kv"
	recordSuffix = ".json"
)

// errDamaged means that a file isn't what it was when it was written, or isn't of our making.
var errDamaged = errors.New("the file is damaged or foreign")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openPlain opens a regular file of our own. It doesn't follow symbolic links.
func openPlain(path string, flag int) (*os.File, fs.FileInfo, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPlain(named); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(path, flag|plainly, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(named, info) {
		err = fmt.Errorf("%w: it was replaced", errDamaged)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// checkPlain refuses everything but a regular file of our own.
func checkPlain(info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !isOurs(info) {
		return fmt.Errorf("%w: it isn't a regular file of this user", errDamaged)
	}
	return nil
}

// checksum reads a file of a known size. Another size is errDamaged.
func checksum(file io.Reader, size int64) (uint32, error) {
	sum := crc32.New(castagnoli)
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{io.LimitReader(file, size+1)}, make([]byte, 1<<20))
	if err == nil && n != size {
		err = fmt.Errorf("%w: %d bytes instead of %d", errDamaged, n, size)
	}
	return sum.Sum32(), err
}

// isLost reports whether an error means that the file can never be used.
func isLost(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EIO)
}
