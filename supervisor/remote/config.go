package remote

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// Config says how a remote is reached, and what is used of it.
type Config struct {
	Name string // for people, and in front of its models' keys; empty: the address's host and port
	URL  string // the address; its paths, such as /v1/models, are below it
	Key  string // sent as a bearer token; empty: none
	Kind string // of the server, one of Kinds; empty: it is asked

	Models        []string // patterns of the keys that are used of its models; none: all
	Vision        []string // patterns of models that accept images, where the server doesn't tell
	Embeddings    []string // patterns of embedding models, where the server doesn't tell
	Rerankers     []string // patterns of rerankers, where the server doesn't tell
	ContextLength int      // of models of which the server doesn't tell it, in tokens; 0: unknown
	Parallel      int      // requests to each model at a time; 0: depends on the kind
	Prefer        int      // places with a lower number come first; this machine has 0

	Stall time.Duration // how long an answer may send nothing; 0: ten minutes

	CA  string // a file with certificates of authorities beside the system's; empty: none
	Pin string // the SHA-256 of the server's certificate, in hex, which is trusted instead of any authority; empty: none

	Peer string // this machine's name in the cluster that the server is another node of; empty: it is none
}

// The kinds of servers.
const (
	KindLmcaddy     = "lmcaddy"
	KindVLLM        = "vllm"
	KindSGLang      = "sglang"
	KindLMStudio    = "lmstudio"
	KindOllama      = "ollama"
	KindLlamaServer = "llama_server"
	KindOpenAI      = "openai"
)

// Kinds lists them.
var Kinds = []string{KindLmcaddy, KindVLLM, KindSGLang, KindLMStudio, KindOllama, KindLlamaServer, KindOpenAI}

// DefaultStall is used where Config.Stall is 0. Servers may be silent through a long prompt.
const DefaultStall = 10 * time.Minute

// MaxPrefer bounds Config.Prefer, either way, and MaxParallel bounds Config.Parallel.
const (
	MaxPrefer   = 1000
	MaxParallel = 100_000
)

// NameOf returns the name of a remote whose configuration has none.
func NameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Validate returns an error if the configuration is invalid. It does no I/O.
func (c *Config) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return errors.New("the address is not a URL") // it may contain a secret
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the address must begin with http:// or https://, and name a host")
	case u.User != nil:
		return errors.New("the address must have no user name or password: use the option key")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address must have no ? and no #")
	}
	if n, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the port %s isn't a number from 1 to 65535", u.Port())
	}
	if strings.ContainsAny(c.Name, "/ @{}") || len(c.Name) > 100 || printable(c.Name) != c.Name {
		return fmt.Errorf("name %q: it must have no slash, space, @ or brace, and at most 100 bytes", c.Name)
	}
	if strings.ContainsFunc(c.Key, unicode.IsControl) {
		return errors.New("key: it must have no line break and no other control character") // it isn't shown
	}
	if c.Kind != "" && !slices.Contains(Kinds, c.Kind) {
		return fmt.Errorf("kind: %q is not one of: %s", c.Kind, strings.Join(Kinds, ", "))
	}
	for _, pattern := range slices.Concat(c.Models, c.Vision, c.Embeddings, c.Rerankers) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is not a pattern: use * for any characters but a slash", pattern)
		}
	}
	switch {
	case c.Parallel > MaxParallel:
		return fmt.Errorf("parallel %d: it must be at most %d", c.Parallel, MaxParallel)
	case c.ContextLength > maxContext:
		return fmt.Errorf("context_length %d: it must be at most %d", c.ContextLength, maxContext)
	case c.Parallel < 0 || c.ContextLength < 0 || c.Stall < 0:
		return errors.New("parallel, context_length and stall_timeout must not be negative")
	case c.Prefer < -MaxPrefer || c.Prefer > MaxPrefer:
		return fmt.Errorf("prefer %d: it must be from %d to %d", c.Prefer, -MaxPrefer, MaxPrefer)
	case c.Pin != "":
		if sum, err := hex.DecodeString(strings.ReplaceAll(c.Pin, ":", "")); err != nil || len(sum) != 32 {
			return errors.New("tls_pin: it must be the SHA-256 of the server's certificate in hex, 64 digits")
		}
	}
	if (c.CA != "" || c.Pin != "") && strings.HasPrefix(c.URL, "http:") {
		return errors.New("the options tls_ca and tls_pin are for addresses that begin with https://")
	}
	return nil
}

// base returns the address without a slash or /v1 at its end: many write the latter.
func (c *Config) base() string {
	return strings.TrimSuffix(strings.TrimRight(c.URL, "/"), "/v1")
}

// SendsKeyInClear reports whether others on the network can read the key.
func (c *Config) SendsKeyInClear() bool {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || c.Key == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func fits(patterns []string, key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		ok, _ := path.Match(pattern, key)
		bare, _ := path.Match(pattern, path.Base(key))
		return ok || bare || pattern == "*"
	})
}

// Found is what a remote says of itself.
type Found struct {
	Kind    string
	Version string // empty: unknown
	Models  []Model
}

// Model is a model of a remote.
type Model struct {
	catalog.Model

	ID        string   // what the server calls it
	Loaded    bool     // as far as the server tells
	Context   int      // tokens that a request gets; 0: unknown
	Slots     int      // requests that the server works on at a time; 0: unknown
	Instances []string // its ids of the loaded instances, if it tells
	Pinned    bool     // one of these is never evicted; only other nodes of the cluster tell
	Via       []string // the ids of the servers like this one that every request to it passes, as [supervisor.Via]
}

// KeyOf returns the key of a model by what a server calls it.
func KeyOf(id string) string {
	id = strings.ToLower(strings.Trim(strings.ReplaceAll(id, "\\", "/"), "/"))
	if strings.HasSuffix(id, ".gguf") { // llama-server calls a model by its file
		id = strings.TrimSuffix(path.Base(id), ".gguf")
	}
	if parts := strings.Split(id, "/"); len(parts) > 2 { // a path
		id = strings.Join(parts[len(parts)-2:], "/")
	}
	return strings.TrimSuffix(id, "-gguf")
}

// describe sets what the name of a model and the configuration tell of it.
func (c *Config) describe(m *Model) {
	m.Key = KeyOf(m.ID)
	publisher, bare, ok := strings.Cut(m.Key, "/")
	if !ok {
		publisher, bare = c.Name, m.Key
	}
	for _, text := range []*string{&m.Publisher, &m.DisplayName, &m.Architecture, &m.Quantization.Name, &m.SizeLabel} {
		*text = printable(*text)
	}
	if m.Changed.IsZero() {
		m.Changed = time.Unix(0, 0) // what lists say of a time that isn't known
	}
	m.Publisher, m.DisplayName = cmp.Or(m.Publisher, publisher), cmp.Or(m.DisplayName, bare)
	if m.Type == "" {
		m.Type = catalog.TypeLLM
		if strings.Contains(m.Key, "embed") {
			m.Type = catalog.TypeEmbedding
		}
	}
	if fits(c.Rerankers, m.Key) {
		m.Type, m.Reranker = catalog.TypeEmbedding, true
	} else if fits(c.Embeddings, m.Key) {
		m.Type = catalog.TypeEmbedding
	}
	m.Vision = m.Vision || fits(c.Vision, m.Key)
	m.Context = cmp.Or(m.Context, c.ContextLength)
	m.MaxContextLength = cmp.Or(m.MaxContextLength, m.Context)
	m.IsRemote = true
}

// takes reports whether a model is used. Its key must be a path without dots as its parts, which people can read.
func (c *Config) takes(m *Model) bool {
	for part := range strings.SplitSeq(m.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return len(m.Key) <= 256 && printable(m.Key) == m.Key && (len(c.Models) == 0 || fits(c.Models, m.Key))
}

// printable returns a text without what a terminal may obey, and not too long.
func printable(text string) string {
	const most = 256
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// number is a whole number that a server tells. Some write it as 4096.0 or 1e9. Anything else is 0.
type number int64

// UnmarshalJSON reads any value.
func (n *number) UnmarshalJSON(text []byte) error {
	const most = 1 << 50
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && v > 0 && v <= most {
		*n = number(v)
	}
	return nil
}

const maxContext = 1 << 30

func (n number) tokens() int {
	return int(min(n, maxContext))
}
