package fakeengine

import (
	"fmt"
	"io"
	"strings"
)

// Columns of the real help: where the text begins, and how wide it is.
const (
	helpIndent = 40
	helpWidth  = 70
)

// printHelp writes the flags as `llama-server --help` does.
func printHelp(w io.Writer, flags []Flag) {
	for i := range flags {
		if flags[i].section != "" {
			if i > 0 {
				fmt.Fprint(w, "\n\n")
			}
			fmt.Fprintf(w, "----- %s -----\n\n", flags[i].section)
		}
		fmt.Fprint(w, flags[i].usage())
	}
}

// usage is one flag's part of the help: short names are padded to seven columns, the text begins at column 40, on a line of its own
// where the names leave no room.
func (f *Flag) usage() string {
	var b strings.Builder
	for i, n := range f.Names {
		switch {
		case len(f.Names) == 1:
			b.WriteString(n)
		case i == 0:
			fmt.Fprintf(&b, "%-7s", n+", ")
		case i < len(f.Names)-1:
			b.WriteString(n + ", ")
		default:
			b.WriteString(n)
		}
	}
	if f.Hint != "" {
		b.WriteString(" " + f.Hint)
	}
	indent := strings.Repeat(" ", helpIndent)
	if b.Len() > helpIndent-3 {
		b.WriteString("\n" + indent)
	} else {
		b.WriteString(indent[b.Len():])
	}
	help := f.Help
	if f.Env != "" {
		help += "\n(env: " + f.Env + ")"
	}
	b.WriteString(strings.Join(wrap(help), "\n"+indent))
	b.WriteByte('\n')
	return b.String()
}

// wrap breaks a text into lines, at its own newlines and between words.
func wrap(text string) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) > helpWidth:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
