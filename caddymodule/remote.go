package caddymodule

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

// Remote is a server of models that lmcaddy reaches over the network and doesn't run, such as vLLM, SGLang, another lmcaddy, LM Studio,
// Ollama or llama-server. Its models are served like those of this machine.
type Remote struct {
	// The address, such as https://gpu1.lan:8000: the server's paths, such as /v1/models, are below it.
	URL string `json:"url"`

	// What the remote is called: its models also have this name and a slash in front of their keys. Default: the address's host and port.
	Name string `json:"name,omitempty"`

	// The key that requests to this remote have, as a bearer token. It may be a placeholder, such as {env.GPU1_KEY}. Default: none.
	Key string `json:"key,omitempty"`

	// The kind of server: "lmcaddy", "vllm", "sglang", "lmstudio", "ollama", "llama_server", or "openai" for any other with an
	// OpenAI-style API. Default: it is asked.
	Kind string `json:"kind,omitempty"`

	// Patterns of the keys of the models that are used. A * stands for any characters but a slash. Default: all.
	Models []string `json:"models,omitempty"`

	// How many requests each of its models gets at a time; more wait here. Default: 256 for vLLM and SGLang, 64 for OpenAI-style servers,
	// 16 for lmcaddy, as many as it has slots for llama-server, 4 for others.
	Parallel int `json:"parallel,omitempty"`

	// Where the remote comes among the places that have a model: those with a lower number come first. This machine has 0. Default: 1.
	Prefer *int `json:"prefer,omitempty"`

	// Patterns of models that accept images, for servers that don't tell.
	Vision []string `json:"vision,omitempty"`

	// Patterns of embedding models, for servers that don't tell. Default: those with "embed" in their keys.
	Embeddings []string `json:"embeddings,omitempty"`

	// Patterns of rerankers, for servers that don't tell.
	Rerankers []string `json:"rerankers,omitempty"`

	// How many tokens one request gets, for servers that don't tell. Default: unknown.
	ContextLength int `json:"context_length,omitempty"`

	// How long the remote may neither read a request nor send anything before it is given up. Default: 10m.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty"`

	// A file with certificates of authorities that are trusted beside the system's.
	TLSCA string `json:"tls_ca,omitempty"`

	// The SHA-256 of the server's certificate in hex, which is trusted instead of any authority.
	TLSPin string `json:"tls_pin,omitempty"`

	// Whether any certificate is accepted: whoever is on the way can read the key and the prompts. Default: false.
	TLSInsecure bool `json:"tls_insecure,omitempty"`
}

// defaultPrefer puts remotes behind this machine.
const defaultPrefer = 1

// remote reads the option remote.
func (a *App) remote(d *caddyfile.Dispenser) error {
	var r Remote
	if err := oneArg(d, &r.URL); err != nil {
		return err
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := r.option(d); err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return wrap(d, err)
		}
	}
	if err := r.check(); err != nil {
		return wrap(d, err)
	}
	for i := range a.Remotes {
		if strings.EqualFold(a.Remotes[i].name(), r.name()) {
			return d.Errf("remote %s: another one is called %s: give it a name of its own", r.URL, r.name())
		}
	}
	a.Remotes = append(a.Remotes, r)
	return nil
}

func (r *Remote) option(d *caddyfile.Dispenser) error {
	switch word := d.Val(); word {
	case "name":
		return oneArg(d, &r.Name)
	case "key":
		return oneArg(d, &r.Key)
	case "kind":
		return oneOfArgs(d, &r.Kind, remote.Kinds...)
	case "models":
		return someArgs(d, &r.Models)
	case "parallel":
		return wholeNumber(d, 1, &r.Parallel)
	case "prefer":
		var value string
		if err := oneArg(d, &value); err != nil {
			return err
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return d.Errf("prefer: %q is not a whole number", value)
		}
		r.Prefer = &n
		return nil
	case "vision":
		return someArgs(d, &r.Vision)
	case "embeddings":
		return someArgs(d, &r.Embeddings)
	case "rerankers":
		return someArgs(d, &r.Rerankers)
	case "context_length":
		return wholeNumber(d, 1, &r.ContextLength)
	case "stall_timeout":
		return timeout(d, &r.StallTimeout)
	case "tls_ca":
		return oneArg(d, &r.TLSCA)
	case "tls_pin":
		return oneArg(d, &r.TLSPin)
	case "tls_insecure":
		return loneWord(d, &r.TLSInsecure)
	default:
		return unknownOption(d, "remote "+r.URL, remoteOptions)
	}
}

// check checks what can be checked before placeholders are resolved.
func (r *Remote) check() error {
	if strings.Contains(r.URL, "{") {
		return nil
	}
	c := r.config(func(s string) string { return s })
	if strings.Contains(c.Key, "{") {
		c.Key = ""
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("remote %s: %w", withoutPassword(r.URL), err)
	}
	return nil
}

func (r *Remote) name() string { return cmp.Or(r.Name, remote.NameOf(r.URL)) }

func (r *Remote) config(resolve func(string) string) remote.Config {
	c := remote.Config{
		Name: r.Name, URL: resolve(r.URL), Key: resolve(r.Key), Kind: r.Kind, Models: r.Models, Vision: r.Vision, Embeddings: r.Embeddings,
		Rerankers: r.Rerankers, ContextLength: r.ContextLength, Parallel: r.Parallel, Prefer: defaultPrefer, Stall: time.Duration(r.StallTimeout),
		Pin: resolve(r.TLSPin), Insecure: r.TLSInsecure,
	}
	if c.Name == "" {
		c.Name = remote.NameOf(c.URL)
	}
	if r.Prefer != nil {
		c.Prefer = *r.Prefer
	}
	if r.TLSCA != "" {
		c.CA = home.Absolute(resolve(r.TLSCA))
	}
	return c
}

// remotes puts the remotes into the settings.
func (a *App) remotes(replace *caddy.Replacer) error {
	var failed error
	for i := range a.Remotes {
		r := &a.Remotes[i]
		c := r.config(func(s string) string {
			said, err := replace.ReplaceOrErr(s, false, true)
			if err != nil && failed == nil {
				failed = fmt.Errorf("remote %s: %w", withoutPassword(r.URL), err)
			}
			return said
		})
		if r.Key != "" && c.Key == "" {
			a.log.Warn("the remote is asked without a key: its placeholder is empty", "remote", c.Name)
		}
		if c.SendsKeyInClear() {
			a.log.Warn("the key of a remote is sent without TLS, so others on its network can read it: use https, or a tunnel such as WireGuard", "remote", c.Name)
		}
		if c.Insecure {
			a.log.Warn("any certificate of a remote is accepted: give tls_ca or tls_pin instead of tls_insecure", "remote", c.Name)
		}
		a.settings.Remotes = append(a.settings.Remotes, c)
	}
	return failed
}

// inForce returns the settings of a remote, without its key.
func (r *Remote) inForce() []resource.Setting {
	key := ""
	if r.Key != "" {
		key = "(set)"
	}
	prefer := ""
	if r.Prefer != nil {
		prefer = strconv.Itoa(*r.Prefer)
	}
	all := []resource.Setting{
		setting("url", withoutPassword(r.URL), ""), setting("kind", r.Kind, "it is asked"), setting("models", words(r.Models), "all"),
		setting("parallel", number(r.Parallel), "depends on the kind"), setting("prefer", prefer, strconv.Itoa(defaultPrefer)),
		setting("stall_timeout", durationOf(r.StallTimeout), timeOf(remote.DefaultStall)),
	}
	for _, s := range []resource.Setting{
		setting("key", key, ""), setting("vision", words(r.Vision), ""), setting("embeddings", words(r.Embeddings), ""), setting("rerankers", words(r.Rerankers), ""),
		setting("context_length", number(r.ContextLength), ""), setting("tls_ca", r.TLSCA, ""), setting("tls_pin", r.TLSPin, ""), setting("tls_insecure", yes(r.TLSInsecure), ""),
	} {
		if s.Value != "" {
			all = append(all, s)
		}
	}
	return all
}
