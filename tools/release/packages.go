package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/service"
)

// makePackages makes the .deb and the .rpm of a target, as packaging/nfpm.yaml says.
func (r *release) makePackages(ctx context.Context, t target, binary string) error {
	stage := filepath.Join(r.work, "stage-"+t.arch)
	if err := r.stage(stage, binary); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		file := filepath.Join(r.output, r.packageName(t, format))
		cmd := exec.CommandContext(ctx, r.nfpm, "package", "--config", filepath.Join(r.source, "packaging", "nfpm.yaml"),
			"--packager", format, "--target", file)
		cmd.Dir = r.source
		cmd.Env = append(os.Environ(), "STAGE="+stage, "GOARCH="+t.arch, "VERSION="+r.version.forPackages(),
			"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.date.Unix(), 10))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nfpm package --packager %s: %w\n%s", format, err, out)
		}
		fmt.Println(" ", filepath.Base(file))
	}
	return nil
}

// packageName is the name that each family's own tools would give the package.
func (r *release) packageName(t target, format string) string {
	if format == "rpm" {
		return fmt.Sprintf("lmcaddy-%s-1.%s.rpm", r.version.forPackages(), map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch])
	}
	return fmt.Sprintf("lmcaddy_%s_%s.deb", r.version.forPackages(), t.arch)
}

// stage lays out the files that the packages install, beside those of the checkout.
func (r *release) stage(stage, binary string) error {
	unit, err := unit()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"lmcaddy.service": unit, "lmcaddy.sysusers": withoutMark(service.Sysusers), "Caddyfile": service.Caddyfile("linux"),
	} {
		if err := write(filepath.Join(stage, name), []byte(text)); err != nil {
			return err
		}
	}
	for _, file := range []string{binary, noticesOf(binary)} {
		if err := link(file, filepath.Join(stage, filepath.Base(file))); err != nil {
			return err
		}
	}
	for _, c := range completions {
		if err := link(filepath.Join(r.completionsDir(), c.file), filepath.Join(stage, "completions", c.file)); err != nil {
			return err
		}
	}
	for _, page := range r.pages() {
		if err := compress(page, filepath.Join(stage, "man", filepath.Base(page)+".gz")); err != nil {
			return err
		}
	}
	return nil
}

// unit returns the text that `lmcaddy service install --system` would write for the packages' program.
func unit() (string, error) {
	linux := service.Host{OS: "linux"}
	manager, err := service.New(linux, linux.Defaults(service.System, "/usr/bin/lmcaddy", ""))
	if err != nil {
		return "", err
	}
	return "# To change it, use \"systemctl edit lmcaddy\".\n" + withoutMark(manager.Definition()), nil
}

// withoutMark returns a text without its first line, which says that the command has written it.
func withoutMark(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "#") {
		return text
	}
	return rest
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func link(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.Link(from, to) // nfpm would pack a symbolic link as one
}

// compress writes a file as gzip -9n does: without its name and date.
func compress(from, to string) (err error) {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(content); err != nil {
		return err
	}
	return z.Close()
}
