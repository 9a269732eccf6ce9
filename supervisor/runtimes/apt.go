package runtimes

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// hostSettings undoes settings of the machine that mustn't apply here: commands to run after an update, and settings for the
// machine's own suites.
const hostSettings = `#clear APT::Update;
#clear APT::Default-Release;
#clear APT::Architectures;
#clear Acquire::Languages;
Acquire::Languages { "none"; };
`

// The folders of a suite that packages are downloaded to.
const (
	engineFolder  = "engine"  // the server with the libraries that it needs
	backendFolder = "backend" // of the variant that was asked for last
)

// aptSuite is a suite of the distribution, with some of its components.
type aptSuite struct {
	name    string
	folder  string   // of apt's configuration and state, and of downloads
	options []string // of every apt command
	pkg     string   // name and version of serverPackage
	// listErr says that some lists failed, which matters only if the packages can't be downloaded then.
	listErr error
	err     error
	engine  []string // the packages in engineFolder; nil: not yet downloaded
	toolkit dotted   // the version of CUDA that the packages in backendFolder are for
}

// suite returns a suite whose package lists are up to date. It is never nil.
func (d *debian) suite(ctx context.Context, name, components string) (*aptSuite, error) {
	key := name + "-" + strings.ReplaceAll(components, " ", "-")
	s := d.suites[key]
	if s == nil {
		s = &aptSuite{name: name}
		d.suites[key] = s
		if s.err = d.configure(ctx, s, key, components); s.err == nil {
			s.err = d.list(ctx, s)
		}
	}
	return s, s.err
}

func (d *debian) configure(ctx context.Context, s *aptSuite, key, components string) error {
	architecture, err := d.run(ctx, "", nil, "dpkg", "--print-architecture")
	if err != nil {
		return err
	}
	if s.folder, err = d.stage.folder("apt-" + key); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(s.folder, name) }
	for _, folder := range []string{"sources", "preferences", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(in(folder), 0o700); err != nil {
			return fmt.Errorf("preparing apt: %w", err)
		}
	}
	var stanzas []string
	for _, source := range d.sources {
		stanzas = append(stanzas, source.inSuite(s.name, components))
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
	s.options = []string{"-c=" + in("apt.conf")}
	for _, setting := range []string{
		"APT::Architectures::=" + strings.TrimSpace(architecture),
		"APT::Sandbox::User=root", // apt's own user can't write into this folder; ignored without root
		"APT::Status-Fd=1",
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
		s.options = append(s.options, "-o", setting)
	}
	return nil
}

// list updates a suite's package lists, and notes the version of the server's package.
func (d *debian) list(ctx context.Context, s *aptSuite) error {
	progress := d.percent("reading the package lists of Debian's " + s.name)
	_, s.listErr = d.run(ctx, s.folder, progress, "apt-get", slices.Concat(s.options, []string{"update"})...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	version, err := d.version(ctx, s, serverPackage)
	s.pkg = serverPackage + " " + version
	return err
}

func (d *debian) version(ctx context.Context, s *aptSuite, pkg string) (string, error) {
	described, err := d.run(ctx, s.folder, nil, "apt-cache", slices.Concat(s.options, []string{"show", "--no-all-versions", pkg})...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(described) {
		if version, ok := strings.CutPrefix(line, "Version: "); ok {
			return strings.TrimSpace(version), nil
		}
	}
	return "", fmt.Errorf("apt knows no version of %s", pkg)
}

// needed returns packages with the libraries that they need.
func (d *debian) needed(ctx context.Context, s *aptSuite, packages ...string) ([]string, error) {
	query := []string{
		"depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
	}
	graph, err := d.run(ctx, s.folder, nil, "apt-cache", slices.Concat(s.options, query, packages)...)
	if err != nil {
		return nil, err
	}
	return neededPackages(graph, packages...), nil
}

// download downloads packages into a folder of the suite. apt verifies the archive's signature.
func (d *debian) download(ctx context.Context, s *aptSuite, folder string, packages []string) error {
	folder = filepath.Join(s.folder, folder)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	_, err := d.run(ctx, folder, d.percent(fmt.Sprintf("fetching %d packages of Debian's %s", len(packages), s.name)),
		"apt-get", slices.Concat(s.options, []string{"download"}, packages)...)
	return err
}

func (s *aptSuite) files(folders ...string) []string {
	var files []string
	for _, folder := range folders {
		found, _ := filepath.Glob(filepath.Join(s.folder, folder, "*.deb")) // the pattern is valid unless the home's name has brackets
		files = append(files, found...)
	}
	return files
}

// neededPackages returns packages and the libraries they need, given the output of apt-cache depends. Their other dependencies are for the
// installation, or for commands that aren't used. A driver's own libraries are left out: only those that fit the kernel's module work.
func neededPackages(graph string, packages ...string) []string {
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
	needed := slices.Clone(packages)
	for i := 0; i < len(needed); i++ {
		for _, name := range depends[needed[i]] {
			isLibrary := strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "zlib")
			if isLibrary && !unwanted.MatchString(name) && !slices.Contains(needed, name) {
				needed = append(needed, name)
			}
		}
	}
	return needed
}

// aptSource is a source of packages in apt's configuration.
type aptSource struct {
	uris, suites, components []string
	// options are Signed-By, which may contain a key, and the other options about trust, unparsed.
	options map[string]string
}

// debianSuites are the suites of Debian. Other distributions and vendors mostly use other names.
var debianSuites = []string{
	"oldoldstable", "oldstable", "stable", "testing", "unstable",
	"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid",
}

// trustOptions are the options to take over from the machine's sources.
var trustOptions = []string{"Signed-By", "Trusted", "Check-Valid-Until", "Valid-Until-Max", "Check-Date", "By-Hash"}

// parseSources parses deb822 stanzas, as in .sources files. It omits disabled entries and those for source packages.
func parseSources(text string) []aptSource {
	var sources []aptSource
	fields := map[string]string{}
	var last string
	flush := func() {
		if source, ok := sourceOf(fields); ok {
			sources = append(sources, source)
		}
		fields, last = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				fields[last] += "\n" + line
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return sources
}

func sourceOf(fields map[string]string) (aptSource, bool) {
	enabled := strings.ToLower(fields["enabled"])
	if slices.Contains([]string{"no", "false", "0", "off", "without", "disable"}, enabled) {
		return aptSource{}, false
	}
	if !slices.Contains(strings.Fields(fields["types"]), "deb") {
		return aptSource{}, false
	}
	source := aptSource{
		uris: strings.Fields(fields["uris"]), suites: strings.Fields(fields["suites"]),
		components: strings.Fields(fields["components"]), options: map[string]string{},
	}
	for _, name := range trustOptions {
		if value := fields[strings.ToLower(name)]; value != "" {
			source.options[name] = value
		}
	}
	return source, true
}

// parseSourcesList parses one-line entries, as in sources.list: deb [option=value …] uri suite component….
func parseSourcesList(text string) []aptSource {
	var sources []aptSource
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, isDeb := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !isDeb || rest == "" || !strings.ContainsAny(rest[:1], " \t[") {
			continue
		}
		fields := map[string]string{"types": "deb"}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			rest = after
			for option := range strings.FieldsSeq(options) {
				name, value, _ := strings.Cut(option, "=")
				fields[strings.ToLower(name)] = strings.ReplaceAll(value, ",", " ")
			}
		}
		words := strings.Fields(rest)
		if len(words) < 3 {
			continue
		}
		fields["uris"], fields["suites"], fields["components"] = words[0], words[1], strings.Join(words[2:], " ")
		if source, ok := sourceOf(fields); ok {
			sources = append(sources, source)
		}
	}
	return sources
}

// debianOwn returns the entries for Debian's main archive. Vendors may use Debian's names for suites and components, so it
// prefers entries with Debian's keyring. If there are none, as on a mirror that signs packages itself, it returns all
// candidates, and apt skips archives without the suite.
func debianOwn(sources []aptSource) []aptSource {
	var certain, possible []aptSource
	for _, source := range sources {
		if len(source.uris) == 0 || strings.HasPrefix(source.uris[0], "cdrom:") ||
			!slices.ContainsFunc(source.suites, func(suite string) bool { return slices.Contains(debianSuites, suite) }) ||
			!slices.Contains(source.components, "main") {
			continue
		}
		possible = append(possible, source)
		signed := source.options["Signed-By"]
		if signed == "" || strings.HasPrefix(filepath.Base(strings.Fields(signed)[0]), "debian-archive-") {
			certain = append(certain, source)
		}
	}
	if len(certain) > 0 {
		return certain
	}
	return possible
}

// inSuite returns a deb822 stanza for components of another suite of the same archive.
func (source aptSource) inSuite(suite, components string) string {
	var text strings.Builder
	for _, field := range [][2]string{
		{"Types", "deb"},
		{"URIs", strings.Join(source.uris, " ")},
		{"Suites", suite},
		{"Components", components},
		{"Targets", "Packages"}, // no translations, icons and so on
	} {
		text.WriteString(field[0] + ": " + field[1] + "\n")
	}
	for _, name := range trustOptions {
		if value := source.options[name]; value != "" {
			text.WriteString(name + ": " + value + "\n")
		}
	}
	return text.String()
}

// run runs a tool of the distribution and returns its standard output. If percent is not nil, the tool must be apt, configured
// to report its progress there.
func (d *debian) run(ctx context.Context, dir string, percent func(float64), name string, arguments ...string) (string, error) {
	var output, complaints strings.Builder
	tool, err := child.Start(child.Options{
		Path: name, Args: arguments, Dir: dir, Env: append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"),
		Line: func(line string) { complaints.WriteString(line + "\n") },
	})
	if err != nil {
		return "", err
	}
	defer tool.Stop()
	_ = tool.Stdin.Close() // a tool that asks a question gets no answer
	defer context.AfterFunc(ctx, tool.Stop)()
	for lines := bufio.NewScanner(tool.Stdout); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		// Such as "dlstatus:3:93.3333:Retrieving file 3 of 3".
		if fields := strings.SplitN(lines.Text(), ":", 4); percent != nil && len(fields) > 2 && fields[0] == "dlstatus" {
			if value, err := strconv.ParseFloat(fields[2], 64); err == nil {
				percent(value)
			}
		}
	}
	<-tool.Done()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := tool.Err(); err != nil {
		return "", fmt.Errorf("%s: %s", name, complaint(complaints.String(), err))
	}
	return output.String(), nil
}

// complaint returns the reason in a tool's output: its first error, or else its first warning, or else its last line.
func complaint(output string, err error) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, mark := range []string{"E: ", "Err:", "W: "} {
		for _, line := range lines {
			if strings.HasPrefix(line, mark) {
				return strings.TrimSpace(line)
			}
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
