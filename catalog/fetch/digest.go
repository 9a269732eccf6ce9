package fetch

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's own checksum of small files
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// readBlock is the number of bytes hashed at a time.
const readBlock = 1 << 20

// digest computes the checksum of a file during its download. It hashes the bytes that have arrived without a gap, so that
// little is left to do at the end. Only one goroutine may call follow at a time.
type digest struct {
	hash  hash.Hash // nil: the checksum isn't known
	want  string    // in hex
	at    int64     // number of bytes hashed
	limit atomic.Int64
	grew  chan struct{} // signals that limit has grown
	ended chan struct{} // closed when the downloaded bytes are discarded
	buf   []byte
}

func newDigest(want hub.RemoteFile) *digest {
	d := &digest{grew: make(chan struct{}, 1), ended: make(chan struct{})}
	switch {
	case want.SHA256 != "":
		d.hash, d.want = sha256.New(), want.SHA256
	case want.GitSHA1 != "":
		d.hash, d.want = sha1.New(), want.GitSHA1 //nolint:gosec // as above
		fmt.Fprintf(d.hash, "blob %d\x00", want.Size)
	}
	return d
}

// reach sets the number of bytes that the file has without a gap.
func (d *digest) reach(to int64) {
	if d.hash == nil || to == d.limit.Load() {
		return
	}
	d.limit.Store(to)
	select {
	case d.grew <- struct{}{}:
	default:
	}
}

// follow hashes bytes as they arrive, until the context or the digest ends.
func (d *digest) follow(ctx context.Context, file io.ReaderAt) {
	for {
		// holds reports the error again
		if d.hash != nil && d.upTo(ctx, file, d.limit.Load()) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-d.ended:
			return
		case <-d.grew:
		}
	}
}

func (d *digest) upTo(ctx context.Context, file io.ReaderAt, to int64) error {
	if d.buf == nil {
		d.buf = make([]byte, readBlock)
	}
	for d.at < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := file.ReadAt(d.buf[:min(readBlock, to-d.at)], d.at)
		if n == 0 && err != nil {
			return diskError("reading what was fetched", err)
		}
		d.hash.Write(d.buf[:n])
		d.at += int64(n)
	}
	return nil
}

// holds completes the checksum of a whole file and compares it. It returns true if no checksum is known.
func (d *digest) holds(ctx context.Context, file io.ReaderAt, size int64) (got string, ok bool, err error) {
	if d.hash == nil {
		return "", true, nil
	}
	if err := d.upTo(ctx, file, size); err != nil {
		return "", false, err
	}
	d.buf = nil
	got = hex.EncodeToString(d.hash.Sum(nil))
	return got, got == d.want, nil
}
