// Package boundedfile reads files of other programs, which may be of any size, or no files.
package boundedfile

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file. Another one, such as a pipe, might never open.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	return f, info, err
}

// ReadStart reads at most this many bytes of a file.
func ReadStart(path string, most int64) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// Read reads a file of at most this many bytes.
func Read(path string, most int64) ([]byte, error) {
	text, err := ReadStart(path, most+1)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, nil
}

// ReadJSON reads a JSON file of at most this many bytes.
func ReadJSON(path string, most int64, into any) error {
	text, err := Read(path, most)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
