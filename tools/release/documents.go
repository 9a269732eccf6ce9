package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// completion is a file that makes a shell complete commands.
type completion struct{ shell, file string }

var completions = []completion{
	{"bash", "lmcaddy.bash"}, {"fish", "lmcaddy.fish"}, {"powershell", "lmcaddy.ps1"}, {"zsh", "_lmcaddy"},
}

func (r *release) completionsDir() string { return filepath.Join(r.work, "completions") }
func (r *release) manDir() string         { return filepath.Join(r.work, "man") }

// pages returns the manual pages' files, in order.
func (r *release) pages() []string {
	pages, _ := filepath.Glob(filepath.Join(r.manDir(), "*.8")) // the pattern is well-formed
	slices.Sort(pages)
	return pages
}

// writeDocuments has the program, built for this machine, write its completions and manual pages.
func (r *release) writeDocuments(ctx context.Context) error {
	program, err := r.build(ctx, target{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.completionsDir(), 0o750); err != nil {
		return err
	}
	for _, c := range completions {
		text, err := r.ask(ctx, program, "completion", c.shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.completionsDir(), c.file), text, 0o600); err != nil {
			return err
		}
	}
	if _, err := r.ask(ctx, program, "manpage", "--directory", r.manDir()); err != nil {
		return err
	}
	if len(r.pages()) == 0 {
		return fmt.Errorf("lmcaddy manpage wrote no pages")
	}
	return nil
}

// ask runs the program. Texts that name the user's home folder have ~ for it.
func (r *release) ask(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.work
	cmd.Env = []string{"HOME=~", "USERPROFILE=~", "PATH=" + os.Getenv("PATH"), "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.date.Unix(), 10)}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("lmcaddy %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}
