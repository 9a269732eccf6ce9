package warm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
)

const (
	// headBytes covers the header of most models: it has what decides how the weights are used.
	headBytes = 16 << 20
	// samples are read of the rest of a file: weights that were trained further differ nearly everywhere.
	samples     = 16
	sampleBytes = 64 << 10
)

// digests remembers what was read of the files of models, since a model that is loaded again waits for this.
type digests struct {
	mu sync.Mutex
	of map[string]digest // by path
}

type digest struct {
	info    fs.FileInfo
	changed int64
	sum     [sha256.Size]byte
}

// file returns the digest of a file: of its size, its beginning and samples of the rest. It is read again if the file was
// changed or replaced.
func (d *digests) file(path string) ([sha256.Size]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	d.mu.Lock()
	known, ok := d.of[path]
	d.mu.Unlock()
	// Tools that synchronize files set the time of modification, also when they have written into the file.
	changed := changedAt(path)
	if ok && os.SameFile(info, known.info) && info.Size() == known.info.Size() && info.ModTime().Equal(known.info.ModTime()) &&
		changed == known.changed {
		return known.sum, nil
	}
	known = digest{info: info, changed: changed}
	sum := sha256.New()
	if err := addFile(sum, path); err != nil {
		return known.sum, err
	}
	sum.Sum(known.sum[:0])
	d.mu.Lock()
	d.of[path] = known
	d.mu.Unlock()
	return known.sum, nil
}

// name returns the name of the folder for the states of a Print. It reads the files.
func (p *Print) name(d *digests) (string, error) {
	sum := sha256.New()
	for _, word := range []string{"print 1", p.Model, p.Engine, p.Build, p.Architecture, p.Launch} {
		addNumber(sum, int64(len(word)))
		_, _ = io.WriteString(sum, word)
	}
	for _, path := range p.Files {
		file, err := d.file(path)
		if err != nil {
			return "", fmt.Errorf("identifying a file of the model %s: %w", p.Model, err)
		}
		_, _ = sum.Write(file[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:idBytes]), nil
}

func addNumber(sum hash.Hash, n int64) {
	_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // any 64 bits will do
}

// addFile adds the size of a file, its beginning and samples of the rest, the last of which is its end.
func addFile(sum hash.Hash, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s isn't a regular file", path)
	}
	size := info.Size()
	addNumber(sum, size)
	if err := addPart(sum, file, 0, min(size, headBytes)); err != nil {
		return err
	}
	rest := size - headBytes
	if rest <= samples*sampleBytes {
		return addPart(sum, file, headBytes, max(0, rest))
	}
	for i := range int64(samples) {
		if err := addPart(sum, file, headBytes+(rest-sampleBytes)/(samples-1)*i, sampleBytes); err != nil {
			return err
		}
	}
	return addPart(sum, file, size-sampleBytes, sampleBytes)
}

func addPart(sum hash.Hash, file io.ReaderAt, from, n int64) error {
	read, err := io.Copy(sum, io.NewSectionReader(file, from, n))
	if err == nil && read != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}
