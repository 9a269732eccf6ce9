package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// machine is what is measured, and what was measured.
type machine struct {
	plan
	table
	ctx     context.Context // of the step that is taken
	version string
	engine  string   // the path of llama-server
	gpu     string   // its name for the first GPU; empty: none
	others  []string // and for further ones, which models are kept off where that matters
	title   string   // the device's name and driver
	alone   alone
}

// listed matches "  CUDA0: NVIDIA H200 (143155 MiB, 142480 MiB free)".
var listed = regexp.MustCompile(`(?m)^ +([A-Za-z]+\d+): (.*) \((\d+ MiB), \d+ MiB free\)$`)

// look finds the engine and the GPU.
func look(m *machine) {
	check(os.MkdirAll(m.home, 0o700))
	m.version = strings.TrimSpace(string(output(m.command("version"))))
	selected := gjson.ParseBytes(output(m.command("runtime", "ls", "--json"))).Get("#(selected==true)")
	if m.engine = selected.Get("path").Str; m.engine == "" {
		check(fmt.Errorf("%s has no engine: run `LMCADDY_HOME=%s %s runtime get llama.cpp`, or put a folder with runtimes there", m.home, m.home, m.bin))
	}
	m.version += ", " + selected.Get("name").Str
	m.title = "the processor"
	for i, d := range listed.FindAllStringSubmatch(string(output(exec.CommandContext(m.ctx, m.engine, "--list-devices"))), -1) {
		if i > 0 {
			m.others = append(m.others, d[1])
			continue
		}
		m.gpu, m.title = d[1], fmt.Sprintf("%s (%s)", d[2], d[3])
	}
	if driver, err := exec.CommandContext(m.ctx, "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").Output(); err == nil {
		version, _, _ := strings.Cut(string(driver), "\n")
		m.title += ", driver " + version
	} else if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.title += ", kernel " + strings.TrimSpace(string(kernel))
	}
}

// command is a command of lmcaddy, which is killed when the step's time is over.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.ctx, m.bin, args...)
	cmd.Dir, cmd.Env = m.home, append(os.Environ(), "LMCADDY_HOME="+m.home)
	return cmd
}

// output runs a command, and returns what it prints.
func output(cmd *exec.Cmd) []byte {
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, failed.Stderr)
	}
	return must(out, err)
}

// The models' keys name the shapes, so that a file that is there has the right one.
func (m *machine) one() string     { return fmt.Sprintf("gpu/one-%dx%d", m.layers, m.width) }
func (m *machine) another() string { return fmt.Sprintf("gpu/another-%dx%d", m.layers, m.width) }
func (m *machine) long() string    { return fmt.Sprintf("gpu/long-%dx%d", m.longLayers, m.longWidth) }

func (m *machine) file(key string) string { return filepath.Join(m.home, "models", key, "model.gguf") }

// weights returns the size of a model's file in bytes.
func (m *machine) weights(key string) int64 { return must(os.Stat(m.file(key))).Size() }

// shape is like those of Llama's models. All heads have one size, so that a GPU's code is compiled once for all models.
func shape(layers, width int) randommodel.Shape {
	heads := width / 128
	return randommodel.Shape{
		Architecture: "llama", Layers: layers, Width: width, Heads: heads, KVHeads: heads / min(heads, 4), HeadSize: 128, FeedForward: 4 * width,
		Context: randommodel.LongContext, Type: randommodel.Q8,
	}
}

// holder is the shape of the model by which another program takes memory: it has few weights, and a cache of holderCache bytes for each token.
var holder = randommodel.Shape{
	Architecture: "llama", Layers: 16, Width: 64, Heads: 32, KVHeads: 32, HeadSize: 128, FeedForward: 64, Context: randommodel.LongContext, Type: randommodel.Q8,
}

const holderCache = 256 << 10

func (m *machine) holderFile() string { return filepath.Join(m.home, "holder.gguf") }

// writeModels writes the models that aren't there, all at once.
func writeModels(m *machine) {
	tokenizer := must(os.ReadFile(m.tokenizer))
	files := map[string]randommodel.Shape{
		m.file(m.one()): shape(m.layers, m.width), m.file(m.another()): shape(m.layers, m.width),
		m.file(m.long()): shape(m.longLayers, m.longWidth), m.holderFile(): holder,
	}
	written := make(chan error, len(files))
	for path, shape := range files {
		go func() {
			_, err := os.Stat(path)
			if err != nil {
				unfinished := path + ".part"
				err = errors.Join(randommodel.Write(unfinished, shape, uint64(len(path)), tokenizer), os.Rename(unfinished, path))
			}
			written <- err
		}()
	}
	for range files {
		select {
		case err := <-written:
			check(err)
		case <-m.ctx.Done():
			check(m.ctx.Err())
		}
	}
}

// launch is how an engine was started.
type launch struct {
	args, env []string
	key       string
}

// launchOf finds out how lmcaddy has started a process.
func launchOf(pid int64) launch {
	words := func(file string) []string {
		content := must(os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)))
		return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
	}
	l := launch{args: words("cmdline")}
	for _, variable := range words("environ") {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "LMCADDY_"): // marks by which lmcaddy would take it for its own, and end it
			continue
		case name == "TMPDIR": // removed when the engine has ended
			continue
		case name == "LLAMA_API_KEY":
			l.key = value
		}
		l.env = append(l.env, variable)
	}
	return l
}

// byHand starts an engine, without a sandbox, and returns it with the time from its start until it is healthy.
func (m *machine) byHand(l launch) (*server, time.Duration) {
	port, args := freePort(), slices.Clone(l.args)
	for option, value := range map[string]string{"--host": "127.0.0.1", "--slot-save-path": m.home} {
		if i := slices.Index(args, option) + 1; i > 0 {
			args[i] = value
		}
	}
	cmd := exec.CommandContext(m.ctx, args[0], append(args[1:], "--port", strconv.Itoa(port))...)
	cmd.Dir, cmd.Env = m.home, l.env
	begin := time.Now()
	s := m.begin(cmd, port, l.key, "byhand.log", "/health")
	return s, time.Since(begin)
}

// place is where a model is, in ps' words.
func place(in gjson.Result) string {
	if p := in.Get("placement").Str; p != "" {
		return p
	}
	return "the processor"
}
