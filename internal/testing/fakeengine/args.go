package fakeengine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// args are the arguments that change what the fake engine does. All others are accepted and recorded in the journal.
type args struct {
	help, version bool
	listDevices   bool
	device        string // as given
	model, draft  string
	mmproj        string
	hosts         []string
	port          int
	alias         string
	context       int
	batch         int
	parallel      int
	unified       *bool
	keys          []string
	embeddings    bool
	reranking     bool
	ubatch        int
	noSlots       bool
	states        string   // the folder for states of slots
	cacheTypes    string   // as given
	attention     string   // as given
	changes       []string // values that change what the model computes
	ping          int
}

// parseArgs reads the environment, then the command line, and fails with the message of the real parser.
func parseArgs(argv []string, flags []Flag) (*args, error) {
	a := &args{hosts: []string{"127.0.0.1"}, port: 9931, batch: 2048, ubatch: 512, parallel: -1, ping: 30}
	if err := a.readEnv(flags); err != nil {
		return nil, err
	}
	for i := 0; i < len(argv); i++ {
		name := argv[i]
		if strings.HasPrefix(name, "--") {
			name = strings.ReplaceAll(name, "_", "-")
		}
		at := slices.IndexFunc(flags, func(f Flag) bool { return slices.Contains(f.Names, name) })
		if at < 0 {
			return nil, fmt.Errorf("error: invalid argument: %s", name)
		}
		f, value := &flags[at], ""
		err := f.refusal()
		if err == nil && f.Hint != "" {
			if i++; i < len(argv) {
				value = argv[i]
			} else {
				err = errors.New("expected value for argument")
			}
		}
		if err == nil {
			err = a.set(name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("error while handling argument %q: %w\n\nusage:\n%s\n\nto show complete usage, run with -h", name, err, f.usage())
		}
	}
	return a, nil
}

// refusal is the error of a removed flag.
func (f *Flag) refusal() error {
	if strings.HasPrefix(f.Help, removed) {
		return errors.New(f.Help)
	}
	return nil
}

func (a *args) readEnv(flags []Flag) error {
	for i := range flags {
		f := &flags[i]
		value, ok := "", false
		if f.Env != "" {
			value, ok = os.LookupEnv(f.Env)
		}
		if !ok {
			continue
		}
		if err := f.refusal(); err != nil {
			return fmt.Errorf("error while handling environment variable %q: %w", f.Env, err)
		}
		if f.Hint == "" && slices.Contains([]string{"0", "off", "false", "disabled"}, value) {
			continue
		}
		// Negative spellings are at the end of a list, so the first name is the positive one.
		if err := a.set(f.Names[0], value); err != nil {
			return fmt.Errorf("error while handling environment variable %q: %w", f.Env, err)
		}
	}
	return nil
}

func (a *args) set(name, value string) (err error) {
	switch name {
	case "-h", "--help", "--usage":
		a.help = true
	case "--version":
		a.version = true
	case "--list-devices":
		a.listDevices = true
	case "-dev", "--device":
		a.device = value
	case "-m", "--model":
		a.model = value
	case "-md", "--model-draft", "--spec-draft-model":
		a.draft = value
	case "-mm", "--mmproj":
		a.mmproj = value
	case "--host":
		a.hosts = strings.Split(value, ",")
	case "--port":
		a.port, err = integer(value)
	case "-a", "--alias":
		a.alias = firstAlias(value)
	case "-c", "--ctx-size":
		a.context, err = integer(value)
	case "-b", "--batch-size":
		if a.batch, err = integer(value); err == nil && a.batch < 2 {
			err = errors.New("a batch of one token: the real server aborts")
		}
	case "-ub", "--ubatch-size":
		a.ubatch, err = integer(value)
	case "-np", "--parallel":
		a.parallel, err = integer(value)
	case "-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified":
		yes := !strings.Contains(name, "no-")
		a.unified = &yes
	case "--api-key":
		a.keys = append(a.keys, strings.Split(value, ",")...)
	case "--api-key-file":
		err = a.readKeys(value)
	case "--embedding", "--embeddings", "--rerank", "--reranking":
		a.embeddings = true
		a.reranking = strings.HasPrefix(name, "--rerank")
	case "--slots", "--no-slots":
		a.noSlots = name == "--no-slots"
	case "--slot-save-path":
		if info, bad := os.Stat(value); bad != nil || !info.IsDir() {
			return errors.New("not a directory: " + value)
		}
		a.states = value
	case "-ctk", "--cache-type-k", "-ctv", "--cache-type-v":
		a.cacheTypes += name + value
	case "-fa", "--flash-attn":
		a.attention = value
	case "--rope-freq-base", "--rope-freq-scale", "--override-kv", "--lora":
		a.changes = append(a.changes, value)
	case "--sse-ping-interval":
		a.ping, err = integer(value)
	}
	return err
}

func integer(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, errors.New("stoi")
	}
	return n, nil
}

// firstAlias returns the first alias in sorted order, which the real server uses as the model's name.
func firstAlias(list string) string {
	names := strings.Split(list, ",")
	slices.Sort(names)
	return names[0]
}

func (a *args) readKeys(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("failed to open file '%s'", path)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			a.keys = append(a.keys, line)
		}
	}
	return nil
}

// id returns the model's name in responses.
func (a *args) id() string {
	if a.alias != "" {
		return a.alias
	}
	return a.model
}

// slots returns the number of slots, and the context of each in tokens.
func (a *args) slots(train int) (n, context int, unified bool) {
	n, unified = a.parallel, false
	if n < 1 {
		n, unified = 4, true
	}
	if a.unified != nil {
		unified = *a.unified
	}
	context = a.context
	switch {
	case context <= 0:
		context = train
	case !unified:
		context /= n
	}
	return n, min((context+255)/256*256, train), unified
}
