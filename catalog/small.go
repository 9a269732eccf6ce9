package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// readSmall reads a file of at most this many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
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
