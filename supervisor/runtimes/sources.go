package runtimes

import (
	"path/filepath"
	"slices"
	"strings"
)

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
		if !source.mayBeDebian() {
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

func (source aptSource) mayBeDebian() bool {
	isSuite := func(suite string) bool { return slices.Contains(debianSuites, suite) }
	return len(source.uris) > 0 && !strings.HasPrefix(source.uris[0], "cdrom:") &&
		slices.ContainsFunc(source.suites, isSuite) && slices.Contains(source.components, "main")
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
