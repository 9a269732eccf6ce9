package fakehub

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Content is the content of a file.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Files are the contents of a repository by path.
type Files map[string]Content

// Text is a file with this text.
func Text(s string) Content { return bytes.NewReader([]byte(s)) }

// Bytes is a file with these bytes.
func Bytes(b []byte) Content { return bytes.NewReader(b) }

// Random is a file with pseudorandom bytes, which depend on the seed. It takes no memory.
func Random(seed uint64, size int64) Content { return random{seed, size} }

type random struct {
	seed uint64
	size int64
}

func (r random) Size() int64 { return r.size }

// ReadAt implements [io.ReaderAt]. The race detector, which would see each word of hundreds of megabytes, leaves it out: it shares
// nothing.
//
//go:norace
func (r random) ReadAt(p []byte, at int64) (int, error) {
	n := 0
	for n < len(p) && at < r.size {
		word := mix(r.seed + uint64(at/8)*0x9e3779b97f4a7c15) //nolint:gosec // offsets aren't negative
		if at%8 == 0 && len(p)-n >= 8 && r.size-at >= 8 {
			binary.LittleEndian.PutUint64(p[n:], word)
			n, at = n+8, at+8
			continue
		}
		p[n] = byte(word >> (at % 8 * 8)) //nolint:gosec // the byte that is meant
		n, at = n+1, at+1
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// mix is the last step of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Disk is a file on disk. It stays open.
func Disk(path string) (Content, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return disk{f, info.Size()}, nil
}

type disk struct {
	*os.File
	size int64
}

// copyTo sends bytes as real servers do, with sendfile.
func (d disk) copyTo(w io.Writer, from, n int64) (int64, error) {
	f, err := os.Open(d.Name())
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	return io.CopyN(w, f, n)
}

func (d disk) Size() int64 { return d.size }

// sums are the checksums of a content in the form of a hub.
func sums(c Content) (sha256sum, gitSHA1 string, err error) {
	large, small := sha256.New(), sha1.New() //nolint:gosec // git's
	fmt.Fprintf(small, "blob %d\x00", c.Size())
	if _, err := io.Copy(io.MultiWriter(large, small), io.NewSectionReader(c, 0, c.Size())); err != nil {
		return "", "", err
	}
	return hex.EncodeToString(large.Sum(nil)), hex.EncodeToString(small.Sum(nil)), nil
}

// Sum returns the SHA-256 of a content in hex.
func Sum(c Content) string {
	sum, _, err := sums(c)
	if err != nil {
		return ""
	}
	return sum
}
