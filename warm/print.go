package warm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

const (
	// headBytes covers the header of most models: it has what decides how the weights are used.
	headBytes = 16 << 20
	// samples are read of the rest of a file: weights that were trained further differ nearly everywhere.
	samples     = 16
	sampleBytes = 64 << 10
)

// name returns the name of the folder for the states of a Print. It reads the files.
func (p *Print) name() (string, error) {
	sum := sha256.New()
	for _, word := range []string{"print 1", p.Model, p.Engine, p.Build, p.Architecture, p.Launch} {
		addNumber(sum, int64(len(word)))
		_, _ = io.WriteString(sum, word)
	}
	for _, path := range p.Files {
		file := sha256.New()
		if err := addFile(file, path); err != nil {
			return "", fmt.Errorf("identifying a file of the model %s: %w", p.Model, err)
		}
		_, _ = sum.Write(file.Sum(nil))
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
