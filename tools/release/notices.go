package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// noticesName is the file with the licenses of what the program contains, most of which must accompany it.
const noticesName = "THIRD-PARTY-LICENSES.txt"

// writeNotices writes the licenses of what a program contains.
func writeNotices(parts []part, to string) error {
	var text bytes.Buffer
	text.WriteString("lmcaddy contains the following software.\n")
	for _, p := range parts {
		name := p.path + " " + p.version
		if p.path == standardLibrary {
			name = "Go " + p.version
		}
		fmt.Fprintf(&text, "\n%s\n%s\n", strings.Repeat("=", 80), name)
		for _, l := range p.licenses {
			fmt.Fprintf(&text, "\n%s:\n\n%s\n", l.file, l.text)
		}
	}
	return os.WriteFile(to, text.Bytes(), 0o600)
}
