package runtimes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// serverPackage is the package that contains llama-server.
const serverPackage = "llama.cpp-tools"

// packageSuites are the suites that have the package, the more stable one first. Installing from them would upgrade the C library
// of an older system, so packages are unpacked into a folder of their own, with all libraries that they need.
var packageSuites = []string{"forky", "sid"}

// hostSettings undoes settings of the machine that mustn't apply here: commands to run after an update, and settings for the
// machine's own suites.
const hostSettings = `#clear APT::Update;
#clear APT::Default-Release;
#clear APT::Architectures;
#clear Acquire::Languages;
Acquire::Languages { "none"; };
`

// distributionPackages returns a function that gets an engine from the distribution's packages; nil if there are none.
func distributionPackages(log *slog.Logger) func(context.Context, *staging, packaged, func(Progress)) (staged, error) {
	if runtime.GOOS != "linux" {
		return nil
	}
	return func(ctx context.Context, stage *staging, installed packaged, report func(Progress)) (staged, error) {
		d := &debian{stage: stage, installed: installed, report: report, log: log}
		return d.get(ctx)
	}
}

// packaged returns the name of the installed runtime that was made from a package, named with its version, or "".
type packaged func(pkg string) string

// debian gets an engine from packages of a Debian-family system, with an apt configuration of its own.
type debian struct {
	stage     *staging
	installed packaged
	report    func(Progress)
	log       *slog.Logger
	apt       string   // folder of the apt configuration and state
	options   []string // options of every apt command
}

func (d *debian) get(ctx context.Context) (staged, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return staged{}, fmt.Errorf("not a Debian-family system: there is no %s", tool)
		}
	}
	sources, err := d.machineSources(ctx)
	if err != nil {
		return staged{}, err
	}
	var failures []error
	for _, suite := range packageSuites {
		pkg, listErr, err := d.list(ctx, sources, suite)
		if err == nil {
			if name := d.installed(pkg); name != "" {
				return staged{installed: name}, d.complete(ctx, name)
			}
		}
		var debs string
		if err == nil {
			debs, err = d.download(ctx, suite)
		}
		if err == nil {
			err = d.downloadWorker(ctx, debs)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", suite, errors.Join(listErr, err)))
			continue
		}
		root, err := d.stage.folder("root")
		if err == nil {
			err = d.unpack(ctx, debs, root)
		}
		if err != nil {
			return staged{}, err
		}
		script, err := makeStartable(root)
		if err != nil {
			return staged{}, err
		}
		d.warn(makeWorkerStartable(root))
		return staged{root: root, executable: script, variant: variantCPU, origin: "Debian's packages, " + suite, pkg: pkg}, nil
	}
	return staged{}, errors.Join(failures...)
}

// machineSources reads the machine's entries for Debian's archive.
func (d *debian) machineSources(ctx context.Context) ([]aptSource, error) {
	output, err := d.run(ctx, "", nil, "apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, "'")
		switch name {
		case "LIST":
			files = append(files, value)
		case "PARTS":
			lists, _ := filepath.Glob(filepath.Join(value, "*.list"))
			stanzas, _ := filepath.Glob(filepath.Join(value, "*.sources"))
			files = append(files, append(lists, stanzas...)...)
		}
	}
	var sources []aptSource
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // often there is no sources.list
		}
		if strings.HasSuffix(file, ".sources") {
			sources = append(sources, parseSources(string(text))...)
		} else {
			sources = append(sources, parseSourcesList(string(text))...)
		}
	}
	own := debianOwn(sources)
	if len(own) == 0 {
		return nil, errors.New("apt's configuration has no entry for Debian's main archive")
	}
	return own, nil
}

// configure creates the apt configuration for one suite.
func (d *debian) configure(ctx context.Context, sources []aptSource, suite string) error {
	architecture, err := d.run(ctx, "", nil, "dpkg", "--print-architecture")
	if err != nil {
		return err
	}
	if d.apt, err = d.stage.folder("apt"); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(d.apt, name) }
	for _, folder := range []string{"sources", "preferences", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(in(folder), 0o700); err != nil {
			return fmt.Errorf("preparing apt: %w", err)
		}
	}
	var stanzas []string
	for _, source := range sources {
		stanzas = append(stanzas, source.inSuite(suite))
	}
	for name, content := range map[string]string{
		"apt.conf":                hostSettings,
		"status":                  "", // no packages are installed
		"sources/lmcaddy.sources": strings.Join(stanzas, "\n"),
	} {
		if err := os.WriteFile(in(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("preparing apt: %w", err)
		}
	}
	d.options = []string{"-c=" + in("apt.conf")}
	for _, setting := range []string{
		"APT::Architectures::=" + strings.TrimSpace(architecture),
		"APT::Sandbox::User=root", // apt's own user can't write into this folder; ignored without root
		"APT::Status-Fd=3",
		"APT::Update::Error-Mode=any",
		"Dir::Etc::sourcelist=/dev/null",
		"Dir::Etc::sourceparts=" + in("sources"),
		"Dir::Etc::preferences=/dev/null",
		"Dir::Etc::preferencesparts=" + in("preferences"),
		"Dir::State=" + in("state"),
		"Dir::State::lists=" + in("state/lists"),
		"Dir::State::status=" + in("status"),
		"Dir::Cache=" + in("cache"),
		"Dir::Cache::archives=" + in("cache/archives"),
		"Dir::Log=" + in("log"),
	} {
		d.options = append(d.options, "-o", setting)
	}
	return nil
}

// list updates a suite's package lists, and returns the name and version of the server's package. listErr says that some lists
// failed, which matters only if the packages can't be downloaded then.
func (d *debian) list(ctx context.Context, sources []aptSource, suite string) (pkg string, listErr, err error) {
	if err := d.configure(ctx, sources, suite); err != nil {
		return "", nil, err
	}
	_, listErr = d.run(ctx, d.apt, d.percent("reading the package lists of Debian's "+suite), "apt-get", slices.Concat(d.options, []string{"update"})...)
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	described, err := d.run(ctx, d.apt, nil, "apt-cache", slices.Concat(d.options, []string{"show", "--no-all-versions", serverPackage})...)
	if err != nil {
		return "", listErr, err
	}
	for line := range strings.Lines(described) {
		if version, ok := strings.CutPrefix(line, "Version: "); ok {
			return serverPackage + " " + strings.TrimSpace(version), listErr, nil
		}
	}
	return "", listErr, fmt.Errorf("apt knows no version of %s", serverPackage)
}

// download downloads the package and the libraries it needs. apt verifies the archive's signature.
func (d *debian) download(ctx context.Context, suite string) (debs string, err error) {
	if debs, err = d.stage.folder("download"); err != nil {
		return "", err
	}
	query := []string{
		"depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
	}
	graph, err := d.run(ctx, debs, nil, "apt-cache", slices.Concat(d.options, query, []string{serverPackage})...)
	if err != nil {
		return "", err
	}
	packages := neededPackages(graph)
	if _, err := d.run(ctx, debs, d.percent(fmt.Sprintf("fetching %d packages of Debian's %s", len(packages), suite)),
		"apt-get", slices.Concat(d.options, []string{"download"}, packages)...); err != nil {
		return "", err
	}
	return debs, nil
}

// neededPackages returns the server's package and the libraries it needs, given the output of apt-cache depends. Its other
// dependencies are for the installation, or for commands that aren't used.
func neededPackages(graph string) []string {
	depends := map[string][]string{}
	var current string
	for line := range strings.Lines(graph) {
		line = strings.TrimRight(line, "\r\n")
		name := strings.TrimSpace(line)
		if name == line {
			current = name
			continue
		}
		relation, target, _ := strings.Cut(strings.TrimPrefix(name, "|"), ": ")
		if relation == "Depends" || relation == "PreDepends" {
			depends[current] = append(depends[current], target)
		}
	}
	needed := []string{serverPackage}
	for i := 0; i < len(needed); i++ {
		for _, name := range depends[needed[i]] {
			isLibrary := strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "zlib")
			if isLibrary && !slices.Contains(needed, name) {
				needed = append(needed, name)
			}
		}
	}
	return needed
}

// unpack unpacks all packages into one tree. It doesn't run their scripts.
func (d *debian) unpack(ctx context.Context, debs, root string) error {
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(files) == 0 {
		return errors.Join(errors.New("apt fetched no packages"), err)
	}
	for i, file := range files {
		d.report(Progress{Doing: "unpacking the packages", Percent: 100 * float64(i) / float64(len(files))})
		if _, err := d.run(ctx, debs, nil, "dpkg-deb", "-x", file, root); err != nil {
			return err
		}
	}
	return nil
}

// percent returns a function that reports the progress of apt.
func (d *debian) percent(doing string) func(float64) {
	return func(percent float64) { d.report(Progress{Doing: doing, Percent: percent}) }
}
