package fakemlx

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// args are the arguments that change what the fake does. All others are only checked.
type args struct {
	help             bool
	model, draft     string
	host             string
	port             int
	temp, topP, minP float64
	topK             int
	maxTokens        int
	templateArgs     map[string]any
	decode, prefill  int
	cacheSize        int
	cacheBytes       int64
}

// flag is a flag of the real server. A value's kind decides what it is checked for.
type flag struct {
	name string
	kind kind
	help string // as --help shows it, wrapped, without the indent
}

type kind int

const (
	text kind = iota
	whole
	fraction
	size
	object
	switchedOn
	level
)

var flags = []flag{
	{"--model", text, "The path to the MLX model weights, tokenizer, and\nconfig"},
	{"--adapter-path", text, "Optional path for the trained adapter weights and\nconfig."},
	{"--host", text, "Host for the HTTP server (default: 127.0.0.1)"},
	{"--port", whole, "Port for the HTTP server (default: 8080)"},
	{"--allowed-origins", text, "Allowed origins (default: *)"},
	{"--draft-model", text, "A model to be used for speculative decoding."},
	{"--num-draft-tokens", whole, "Number of tokens to draft when using speculative\ndecoding."},
	{"--trust-remote-code", switchedOn, "Enable trusting remote code for tokenizer"},
	{"--log-level", level, "Set the logging level (default: INFO)"},
	{"--chat-template", text, "Specify a chat template for the tokenizer"},
	{"--use-default-chat-template", switchedOn, "Use the default chat template"},
	{"--temp", fraction, "Default sampling temperature (default: 0.0)"},
	{"--top-p", fraction, "Default nucleus sampling top-p (default: 1.0)"},
	{"--top-k", whole, "Default top-k sampling (default: 0, disables top-k)"},
	{"--min-p", fraction, "Default min-p sampling (default: 0.0, disables min-p)"},
	{"--max-tokens", whole, "Default maximum number of tokens to generate (default:\n512)"},
	{
		"--chat-template-args", object,
		"A JSON formatted string of arguments for the\ntokenizer's apply_chat_template, e.g.\n'{\"enable_thinking\":false}'",
	},
	{"--decode-concurrency", whole, "When a request is batchable then decode that many\nrequests in parallel"},
	{"--prompt-concurrency", whole, "When a request is batchable then process that many\nprompts in parallel"},
	{"--prefill-step-size", whole, "Step size for prefill processing (default: 2048)"},
	{"--prompt-cache-size", whole, "Maximum number of distinct KV caches to hold in the\nprompt cache"},
	{"--prompt-cache-bytes", size, "Maximum size in bytes of the KV caches"},
	{"--pipeline", switchedOn, "Use pipelining instead of tensor parallelism"},
}

// known are the flags without the hidden ones.
func known(hidden []string) []flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f flag) bool { return slices.Contains(hidden, f.name) })
}

// value is the placeholder of a flag's value.
func (f flag) value() string {
	switch f.kind {
	case switchedOn:
		return ""
	case level:
		return " {DEBUG,INFO,WARNING,ERROR,CRITICAL}"
	}
	return " " + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(f.name, "--"), "-", "_"))
}

// usage is the first part of --help, wrapped as argparse does it.
func usage(hidden []string) string {
	parts := []string{"[-h]"}
	for _, f := range known(hidden) {
		parts = append(parts, "["+f.name+f.value()+"]")
	}
	var b strings.Builder
	b.WriteString("usage: " + serverName)
	indent := strings.Repeat(" ", b.Len())
	column := b.Len()
	for _, part := range parts {
		if column+1+len(part) > 78 {
			b.WriteString("\n" + indent)
			column = len(indent)
		}
		b.WriteString(" " + part)
		column += 1 + len(part)
	}
	return b.String() + "\n"
}

// help is what --help prints.
func help(hidden []string) string {
	var b strings.Builder
	b.WriteString(usage(hidden) + "\nMLX Http Server.\n\noptions:\n  -h, --help            show this help message and exit\n")
	for _, f := range known(hidden) {
		lines := strings.Split(f.help, "\n")
		head := "  " + f.name + f.value()
		if len(head) <= 22 {
			fmt.Fprintf(&b, "%-24s%s\n", head, lines[0])
			lines = lines[1:]
		} else {
			b.WriteString(head + "\n")
		}
		for _, line := range lines {
			b.WriteString(strings.Repeat(" ", 24) + line + "\n")
		}
	}
	return b.String()
}

// parseArgs reads arguments as argparse does: a value may be the next argument or follow an equals sign.
func parseArgs(argv, hidden []string) (*args, error) {
	a := &args{host: "127.0.0.1", port: 8080, topP: 1, maxTokens: 512, decode: 32, prefill: 2048, cacheSize: 10, cacheBytes: math.MaxInt64}
	all := known(hidden)
	for i := 0; i < len(argv); i++ {
		name, value, joined := strings.Cut(argv[i], "=")
		if name == "-h" || name == "--help" {
			a.help = true
			return a, nil
		}
		at := slices.IndexFunc(all, func(f flag) bool { return f.name == name })
		if at < 0 {
			return nil, fmt.Errorf("unrecognized arguments: %s", argv[i])
		}
		if all[at].kind == switchedOn {
			continue
		}
		if !joined {
			if i++; i == len(argv) {
				return nil, fmt.Errorf("argument %s: expected one argument", name)
			}
			value = argv[i]
		}
		if err := a.set(all[at], value); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// set takes one value.
func (a *args) set(f flag, value string) error {
	number, err := 0.0, error(nil)
	kindName := "int"
	switch f.kind {
	case whole:
		var n int
		n, err = strconv.Atoi(value)
		number = float64(n)
	case fraction:
		kindName = "float"
		number, err = strconv.ParseFloat(value, 64)
	case size:
		kindName = "_parse_size"
		a.cacheBytes, err = parseSize(value)
	case object:
		kindName = "loads"
		var v any
		if v, err = loads([]byte(value)); err == nil {
			a.templateArgs, _ = v.(map[string]any)
		}
	case level:
		if !slices.Contains([]string{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, value) {
			return fmt.Errorf("argument %s: invalid choice: '%s' (choose from DEBUG, INFO, WARNING, ERROR, CRITICAL)", f.name, value)
		}
	}
	if err != nil {
		return fmt.Errorf("argument %s: invalid %s value: '%s'", f.name, kindName, value)
	}
	switch f.name {
	case "--model":
		a.model = value
	case "--draft-model":
		a.draft = value
	case "--host":
		a.host = value
	case "--port":
		a.port = int(number)
	case "--temp":
		a.temp = number
	case "--top-p":
		a.topP = number
	case "--top-k":
		a.topK = int(number)
	case "--min-p":
		a.minP = number
	case "--max-tokens":
		a.maxTokens = int(number)
	case "--decode-concurrency":
		a.decode = max(1, int(number))
	case "--prefill-step-size":
		a.prefill = max(1, int(number))
	case "--prompt-cache-size":
		a.cacheSize = int(number)
	}
	return nil
}

// parseSize reads a number of bytes with a unit, as in 512M and 4GB.
func parseSize(value string) (int64, error) {
	digits := strings.TrimRight(value, "BGMbgm ")
	units := map[string]float64{"": 1, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9}
	unit, ok := units[strings.ToUpper(strings.TrimSpace(value[len(digits):]))]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok {
		return 0, fmt.Errorf("no size: %s", value)
	}
	return int64(n * unit), nil
}
