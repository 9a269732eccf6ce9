package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// checksumsName is the file that `sha256sum --check` reads.
const checksumsName = "SHA256SUMS"

// writeChecksums writes the checksums of all files in a folder, in the order of their names.
func writeChecksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		sum, err := sumOf(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		text.WriteString(sum + "  " + entry.Name() + "\n")
	}
	return os.WriteFile(filepath.Join(folder, checksumsName), []byte(text.String()), 0o644) //nolint:gosec // to be published
}

// sumOf returns the SHA-256 of a file, in hexadecimal digits.
func sumOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
