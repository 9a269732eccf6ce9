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
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/klauspost/compress/zstd"
	"github.com/shirou/gopsutil/v3/disk"
)

const (
	maxEntryJSON = 64 << 20 // bytes of the header, or of the checksums
	maxWindow    = 128 << 20
	maxFiles     = 1 << 18  // a home has some thousands, and each entry takes memory
	maxTrailer   = 10 << 20 // bytes after the checksums, which tar fills up to a block
)

var errCut = errors.New("it is cut off: its end is missing")

// DamagedError means that a file is no archive that can be restored.
type DamagedError struct {
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the file isn't a whole backup of lmcaddy: %v. Nothing was changed", e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// NewerError means that a newer program has written an archive.
type NewerError struct{ Version string }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the backup was made by a newer lmcaddy (%q), whose format this one doesn't know: "+
		"restore it with that version, or a newer one. Nothing was changed", e.Version)
}

type archive struct {
	ctx    context.Context
	packed *zstd.Decoder
	tar    *tar.Reader
	header Header
}

func open(ctx context.Context, from io.Reader) (*archive, error) {
	packed, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, &DamagedError{err}
	}
	a := &archive{ctx: ctx, packed: packed, tar: tar.NewReader(packed)}
	entry, err := a.tar.Next()
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		err = errors.New("it isn't compressed by zstd")
	case errors.Is(err, io.EOF):
		err = errors.New("nothing is in it")
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errCut
	}
	if err == nil && entry.Name != headerName {
		err = fmt.Errorf("it begins with %q", entry.Name)
	}
	if err == nil {
		err = a.json(entry, &a.header)
	}
	switch {
	case err != nil:
		packed.Close()
		return nil, &DamagedError{err}
	case a.header.Format < 1:
		packed.Close()
		return nil, &DamagedError{fmt.Errorf("%s doesn't name its format", headerName)}
	case a.header.Format > Format:
		packed.Close()
		return nil, &NewerError{a.header.Version}
	}
	return a, nil
}

func (a *archive) close() { a.packed.Close() }

func (a *archive) json(entry *tar.Header, to any) error {
	if entry.Size > maxEntryJSON {
		return fmt.Errorf("%s is too large", entry.Name)
	}
	text, err := io.ReadAll(a.tar)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// extract writes the files below two folders, those of models below models and all others below rest, and checks them. The result
// are the paths, in the order of the archive.
func (a *archive) extract(rest, models *os.Root) ([]string, error) {
	got := map[string]Sum{}
	var order []string
	for {
		entry, err := a.tar.Next()
		if err == nil {
			err = a.ctx.Err()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, &DamagedError{errCut}
		case err != nil && a.ctx.Err() != nil:
			return nil, a.ctx.Err()
		case err != nil:
			return nil, &DamagedError{err}
		case entry.Name == sumsName:
			return order, a.check(entry, got)
		case len(order) == maxFiles:
			return nil, &DamagedError{fmt.Errorf("it has more than %d files", maxFiles)}
		}
		name, ok := strings.CutPrefix(entry.Name, homePrefix)
		err = mayContain(name)
		if _, twice := got[name]; !ok || twice || err != nil || entry.Typeflag != tar.TypeReg {
			return nil, &DamagedError{fmt.Errorf("it has an entry %q that no backup has", entry.Name)}
		}
		to := rest
		if strings.HasPrefix(name, "models/") {
			to = models
		}
		// Others on the machine shouldn't run out of room. A disk that doesn't tell how much is free may have enough.
		if usage, err := disk.Usage(to.Name()); err == nil && usage.Free <= uint64(max(0, entry.Size)) {
			return nil, fmt.Errorf("the disk has too little room: a file of the backup has %s, and %s are free: free some, "+
				"or choose a home on another disk with LMCADDY_HOME. Nothing was changed",
				humanize.Bytes(uint64(max(0, entry.Size))), humanize.Bytes(usage.Free))
		}
		sum, err := a.file(to, name)
		// Its name is that of another, where case doesn't matter, or that of a folder.
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) {
			return nil, &DamagedError{fmt.Errorf("%q can't be there together with another file of it", name)}
		}
		if err != nil {
			return nil, err
		}
		got[name] = sum
		order = append(order, name)
	}
}

func (a *archive) file(root *os.Root, name string) (Sum, error) {
	local := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return Sum{}, err
	}
	mode := fs.FileMode(0o600)
	if strings.HasPrefix(name, "models/") {
		mode = 0o644
	}
	out, err := root.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return Sum{}, err
	}
	hash := sha256.New()
	from := &source{ctx: a.ctx, from: a.tar}
	n, err := io.Copy(io.MultiWriter(out, hash), from)
	switch {
	case a.ctx.Err() != nil:
		err = a.ctx.Err()
	case from.err != nil:
		err = &DamagedError{from.err}
	case err == nil:
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return Sum{}, err
	}
	return Sum{name, n, hex.EncodeToString(hash.Sum(nil))}, syncFolder(root, path.Dir(name))
}

// source ends with the context, and remembers the error of reading, which tells a damaged archive from a full disk.
type source struct {
	ctx  context.Context
	from io.Reader
	got  func(bytes int) // called after each read; may be nil
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.from.Read(p)
	if s.got != nil {
		s.got(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// check compares the files with the checksums, and looks for the end of the archive, where its compression has a checksum, too.
func (a *archive) check(entry *tar.Header, got map[string]Sum) error {
	var want sums
	if err := a.json(entry, &want); err != nil {
		return &DamagedError{err}
	}
	if len(want.Files) != len(got) {
		return &DamagedError{fmt.Errorf("it has %d files rather than %d", len(got), len(want.Files))}
	}
	for _, w := range want.Files {
		if got[w.Path] != w {
			return &DamagedError{fmt.Errorf("%q isn't what it was when the backup was made", w.Path)}
		}
	}
	switch n, err := io.Copy(io.Discard, io.LimitReader(a.packed, maxTrailer)); {
	case err != nil:
		return &DamagedError{err}
	case n == maxTrailer:
		return &DamagedError{errors.New("something follows its end")}
	}
	return nil
}
