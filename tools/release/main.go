// Command release builds what a release consists of, into a folder: archives for all targets with their lists of components
// (SBOM), packages for Debian's and Red Hat's families, the manifests of Homebrew, Scoop and winget, scripts that install
// an archive, and the checksums of all of it.
//
// The same commit gives the same bytes, in whatever folder and whenever it is built: see docs/packaging.md.
package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// release is what one run builds.
type release struct {
	version version
	source  string    // the checkout
	output  string    // the folder for the result
	work    string    // a folder for what is on the way
	nfpm    string    // the program that makes packages; "": none are made
	date    time.Time // of all files
	targets []target

	published string // the address of the folder that will have the files; "": it isn't known
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		log.Fatal("release: ", err) //nolint:gocritic // there is nothing else to end
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	source := flags.String("source", ".", "the checkout to build")
	output := flags.String("output", "dist", "the folder for the result, which is emptied first")
	named := flags.String("version", "", "the version (default: what git describe says)")
	only := flags.String("targets", "", "the targets, such as linux/amd64,darwin/arm64 (default: all)")
	nfpm := flags.String("nfpm", "", "nfpm, which makes .deb and .rpm; without it there are none")
	published := flags.String("published", "",
		"the https address of the folder that will have the files; without it there are no manifests of Homebrew, Scoop and winget")
	if err := flags.Parse(args); err != nil {
		return err
	}
	targets, err := parseTargets(*only)
	if err != nil {
		return err
	}
	r := &release{targets: targets, nfpm: *nfpm, published: strings.TrimSuffix(*published, "/")}
	if r.source, err = filepath.Abs(*source); err == nil {
		r.output, err = filepath.Abs(*output)
	}
	if err != nil {
		return err
	}
	if r.nfpm != "" {
		if r.nfpm, err = filepath.Abs(r.nfpm); err != nil {
			return err
		}
	}
	r.version = version(*named)
	if r.version == "" {
		if r.version, err = describe(ctx, r.source); err != nil {
			return err
		}
	}
	if r.date, err = dateOf(ctx, r.source); err != nil {
		return err
	}
	if err := checkGo(filepath.Join(r.source, "go.mod")); err != nil {
		return err
	}
	return r.make(ctx)
}

// make builds everything in a new folder.
func (r *release) make(ctx context.Context) (err error) {
	r.work, err = os.MkdirTemp("", "lmcaddy-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.RemoveAll(r.output); err != nil {
		return err
	}
	if err := os.MkdirAll(r.output, 0o755); err != nil { //nolint:gosec // its files are to be published
		return err
	}
	fmt.Println("lmcaddy", r.version)
	if err := r.writeDocuments(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.makeTarget(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := errors.Join(r.writeManifests(), r.writeInstallers()); err != nil {
		return err
	}
	return writeChecksums(r.output)
}

// makeTarget builds what a target's users download.
func (r *release) makeTarget(ctx context.Context, t target) error {
	binary, err := r.build(ctx, t)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	parts, err := r.partsOf(ctx, info)
	if err != nil {
		return err
	}
	if err := writeNotices(parts, noticesOf(binary)); err != nil {
		return err
	}
	archive := filepath.Join(r.output, r.archiveName(t))
	if err := writeArchive(archive, r.archiveFolder(t), r.filesFor(t, binary), r.date); err != nil {
		return err
	}
	fmt.Println(" ", filepath.Base(archive))
	if err := r.writeSBOM(binary, info, parts, archive+".cdx.json"); err != nil {
		return err
	}
	if t.os != "linux" || r.nfpm == "" {
		return nil
	}
	return r.makePackages(ctx, t, binary)
}

// dateOf returns the date that all files of the release get: $SOURCE_DATE_EPOCH, or that of the commit.
func dateOf(ctx context.Context, source string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "-C", source, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the commit's date: %w; outside of a checkout, set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is the number of seconds since 1970, not %q", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// checkGo checks that this program was built by the version of Go that go.mod names: another one builds other bytes.
func checkGo(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		want, ok := strings.CutPrefix(strings.TrimSpace(line), "go ")
		if !ok {
			continue
		}
		if has := cmp.Or(runtime.Version(), "unknown"); has != "go"+want {
			return fmt.Errorf("a release is built by go%s, and this is %s: run it with GOTOOLCHAIN=go%s", want, has, want)
		}
		return nil
	}
	return fmt.Errorf("%s names no version of Go", file)
}
