package venv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unpackScript prints the version of the pip that comes with Python, and unpacks it without the metadata that would make it a package
// of the environment. Distributions keep its wheel in a folder of their own.
const unpackScript = `import ensurepip, os, sys, sysconfig, zipfile
version = ensurepip.version()
print(version, flush=True)
folders = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
wheels = [os.path.join(folder, f"pip-{version}-py3-none-any.whl") for folder in folders if folder]
with zipfile.ZipFile(next(filter(os.path.exists, wheels))) as wheel:
    wheel.extractall(sys.argv[1], [name for name in wheel.namelist() if name.startswith("pip/")])`

// unpacked is the folder in Options.Temp that pip is unpacked to.
const unpacked = "unpacked"

// pip is a pip that installs packages in an environment.
type pip struct {
	python      string // the environment's
	program     []string
	version     string // such as "25.0.1"
	environment []string
}

// pip returns a pip for the environment in o.Folder, with its settings: the one that comes with Python, unpacked beside the
// environment. If that can't be found or run, it is installed in the environment, which takes several times as long.
func (p Python) pip(ctx context.Context, o Options, environment []string) (pip, settings, error) {
	folder := filepath.Join(o.Temp, unpacked)
	tool := pip{
		python: filepath.Join(o.Folder, interpreter), program: []string{filepath.Join(folder, "pip")}, environment: environment,
	}
	_, err := run(ctx, environment, func(line string) { tool.version = line }, p.Path, "-I", "-c", unpackScript, folder)
	if err == nil {
		if s, err := tool.settings(ctx, o); err == nil {
			return tool, s, nil
		}
	}
	if ctx.Err() != nil {
		return pip{}, nil, context.Cause(ctx)
	}
	if words, err := run(ctx, environment, nil, tool.python, "-I", "-m", "ensurepip"); err != nil {
		return pip{}, nil, fmt.Errorf("%s -m ensurepip: %w", p.Path, failure(err, words))
	}
	tool.program = []string{"-m", "pip"}
	s, err := tool.settings(ctx, o)
	return tool, s, err
}

// run runs pip. Its output comes at once.
func (p pip) run(ctx context.Context, environment []string, line func(string), arguments ...string) (words []string, err error) {
	return run(ctx, environment, line, p.python, slices.Concat([]string{"-I", "-u"}, p.program, arguments)...)
}

// settings are pip's settings by name, such as "index-url".
type settings map[string]string

// taken are the settings about where packages come from, which are taken from pip's configuration.
var taken = []string{
	"index-url", "extra-index-url", "find-links", "no-index",
	"trusted-host", "cert", "client-cert", "keyring-provider", "proxy", "timeout", "default-timeout", "retries",
}

// settings asks pip for its configuration, in files and in variables of this process.
func (p pip) settings(ctx context.Context, o Options) (settings, error) {
	var lines []string
	environment := slices.Clone(p.environment)
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "PIP_") {
			environment = append(environment, variable)
		}
	}
	words, err := p.run(ctx, environment, func(line string) { lines = append(lines, line) }, "config", "list")
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("pip's configuration can't be read: %w", failure(err, words))
	}
	s := parseSettings(lines)
	if o.Index != "" {
		s.use(o.Index)
	}
	return s, nil
}

// use replaces all sources of packages by an index.
func (s settings) use(index string) {
	for _, name := range []string{"extra-index-url", "find-links", "no-index"} {
		delete(s, name)
	}
	s["index-url"] = index
}

// parseSettings parses the output of `pip config list`: lines such as global.index-url='https://host/simple', with the value as a
// literal of Python. A later section overrides an earlier one.
func parseSettings(lines []string) settings {
	s := settings{}
	for _, section := range []string{"global.", "install.", ":env:."} {
		for _, line := range lines {
			assignment, ok := strings.CutPrefix(line, section)
			name, value, isSet := strings.Cut(assignment, "=")
			if !ok || !isSet || len(value) < 2 {
				continue
			}
			for _, each := range taken {
				if each == name {
					s[name] = strings.NewReplacer(`\n`, " ", `\\`, `\`, `\'`, `'`).Replace(value[1 : len(value)-1])
				}
			}
		}
	}
	return s
}

// variables returns the settings as variables, since arguments are visible to other users and may hold a password.
func (s settings) variables() []string {
	var all []string
	for _, name := range taken {
		if value := s[name]; value != "" {
			all = append(all, "PIP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
		}
	}
	return all
}

// source returns the host that packages are from.
func (s settings) source() string {
	index := s["index-url"]
	if index == "" {
		return "PyPI"
	}
	parsed, err := url.Parse(index)
	if err != nil {
		return ""
	}
	return parsed.Host
}

// install installs the package and all that it requires.
func (p pip) install(ctx context.Context, o Options, s settings) error {
	environment := slices.Concat(p.environment, s.variables(), []string{"PIP_CONFIG_FILE=" + os.DevNull})
	bar := "off"
	if p.tellsProgress() {
		bar = "raw"
	}
	told := &progress{report: o.Progress}
	words, err := p.run(ctx, environment, told.line,
		"install", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-color", "--no-warn-script-location",
		"--only-binary", ":all:", "--progress-bar", bar, o.Requirement)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("pip install %s: %w", o.Requirement, failure(err, words))
	}
	return nil
}

// tellsProgress reports whether pip is of version 24.1 or later.
func (p pip) tellsProgress() bool {
	var major, minor int
	_, err := fmt.Sscanf(p.version, "%d.%d", &major, &minor)
	return err == nil && (major > 24 || major == 24 && minor >= 1)
}

// progress reports what pip's output says.
type progress struct {
	report func(doing string, done, total int64)
	doing  string
}

var (
	fetching   = regexp.MustCompile(`^Downloading (?:\S*/)?([^/\s?#]+)`)
	fetched    = regexp.MustCompile(`^Progress (\d+) of (\d+)$`)
	collecting = regexp.MustCompile(`^Collecting ([\w.-]+)`)
	installing = regexp.MustCompile(`^Installing collected packages: (.*)$`)
)

func (p *progress) line(line string) {
	var done, total int64
	if m := fetched.FindStringSubmatch(line); m != nil && p.doing != "" {
		done, _ = strconv.ParseInt(m[1], 10, 64)
		total, _ = strconv.ParseInt(m[2], 10, 64)
	} else if m := collecting.FindStringSubmatch(line); m != nil {
		p.doing = "looking for " + m[1]
	} else if m := fetching.FindStringSubmatch(line); m != nil {
		p.doing = "fetching " + m[1]
	} else if m := installing.FindStringSubmatch(line); m != nil {
		p.doing = fmt.Sprintf("installing %d packages", strings.Count(m[1], ",")+1)
	} else {
		return
	}
	p.report(p.doing, done, total)
}
