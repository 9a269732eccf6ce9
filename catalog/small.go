package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// openFile opens a regular file. Another one, such as a pipe, might never open.
func openFile(path string) (*os.File, fs.FileInfo, error) {
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

// readStart reads at most this many bytes of a file.
func readStart(path string, most int64) ([]byte, error) {
	f, _, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// readSmall reads a file of at most this many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	text, err := readStart(path, most+1)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, nil
}

// readJSON reads a JSON file of at most this many bytes.
func readJSON(path string, most int64, into any) error {
	text, err := readSmall(path, most)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
