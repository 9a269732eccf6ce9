package config

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

// Remote is a server of models that lmcaddy reaches over the network and doesn't run.
type Remote struct {
	// The address, such as https://gpu1.lan:8000: the server's paths, such as /v1/models, are below it.
	URL string `json:"url" head:"<url>" secret:"password"`

	// What the remote is called: its models also have this name and a slash in front of their keys. Default: the address's host and port.
	Name string `json:"name,omitempty" args:"<name>"`

	// The key that requests to this remote have, as a bearer token. It may be a placeholder, such as {env.GPU1_KEY}. Default: none.
	Key string `json:"key,omitempty" args:"<key>" secret:"all"`

	// The kind of server: "openai" is any with an OpenAI-style API that isn't one of the others.
	Kind string `json:"kind,omitempty" args:"lmcaddy|vllm|sglang|lmstudio|ollama|llama_server|openai" otherwise:"it is asked"`

	// Patterns of the keys of the models that are used. A * stands for any characters but a slash.
	Models []string `json:"models,omitempty" args:"<pattern...>" otherwise:"all"`

	// How many requests each of its models gets at a time; more wait here: 256 for vLLM and SGLang, 64 for OpenAI-style servers, 16 for
	// lmcaddy, as many as it has slots for llama-server, 4 for others, unless this is set.
	Parallel int `json:"parallel,omitempty" args:"<n>" min:"1" otherwise:"depends on the kind"`

	// Where the remote comes among the places that have a model: those with a lower number come first. This machine has 0.
	Prefer *int `json:"prefer,omitempty" args:"<n>" default:"1"`

	// Patterns of models that accept images, for servers that don't tell.
	Vision []string `json:"vision,omitempty" args:"<pattern...>"`

	// Patterns of embedding models, for servers that don't tell. Default: those with "embed" in their keys.
	Embeddings []string `json:"embeddings,omitempty" args:"<pattern...>"`

	// Patterns of rerankers, for servers that don't tell.
	Rerankers []string `json:"rerankers,omitempty" args:"<pattern...>"`

	// How many tokens one request gets, for servers that don't tell. Default: unknown.
	ContextLength int `json:"context_length,omitempty" args:"<tokens>" min:"1"`

	// How long the remote may neither read a request nor send anything before it is given up.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty" args:"<duration>" default:"10m"`

	// A file with certificates of authorities that are trusted beside the system's.
	TLSCA string `json:"tls_ca,omitempty" args:"<file>"`

	// The SHA-256 of the server's certificate in hex, which is trusted instead of any authority.
	TLSPin string `json:"tls_pin,omitempty" args:"<sha256>"`
}

// Check checks what can be checked before placeholders are resolved.
func (r *Remote) Check() error {
	if strings.Contains(r.URL, "{") {
		return nil
	}
	c := r.node(func(s string) string { return s })
	if strings.Contains(c.Key, "{") {
		c.Key = ""
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("remote %s: %w", option.WithoutPassword(r.URL), err)
	}
	return nil
}

func (r *Remote) name() string { return cmp.Or(r.Name, remote.NameOf(r.URL)) }

func (r *Remote) node(resolve func(string) string) remote.Config {
	c := remote.Config{
		Name: r.Name, URL: resolve(r.URL), Key: resolve(r.Key), Kind: r.Kind, Models: r.Models, Vision: r.Vision, Embeddings: r.Embeddings,
		Rerankers: r.Rerankers, ContextLength: r.ContextLength, Parallel: r.Parallel, Stall: time.Duration(r.StallTimeout),
		Pin: resolve(r.TLSPin),
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

// Cluster makes this server one of several, the nodes, that share a PostgreSQL store.
type Cluster struct {
	// Where the other nodes reach this one, such as https://10.0.0.2:8443: the address of a site with lm_api. It may be a placeholder, such
	// as {env.NODE_URL}. The host and port are the node's name.
	URL string `json:"url" head:"<url>" secret:"password"`

	// A file with certificates of authorities that are trusted when other nodes are asked, beside the system's.
	TLSCA string `json:"tls_ca,omitempty" args:"<file>" otherwise:"the system's authorities"`
}

// The environment variables of Hugging Face's own tools. They are used if the configuration names no hub.
const (
	hubVariable   = "HF_ENDPOINT"
	tokenVariable = "HF_TOKEN"
)

// Hub is a place that models are downloaded from. It speaks the API of huggingface.co.
type Hub struct {
	// The address, such as https://huggingface.co: its models are below it, as /<publisher>/<repository>. Plain http is
	// for this machine alone.
	URL string `json:"url" head:"<url>" secret:"password"`

	// The token that requests to this hub have, and no other, even after a redirect. It may be a placeholder, such as {env.HF_TOKEN}.
	// Default: none.
	Token string `json:"token,omitempty" args:"<token>" secret:"all"`

	// How long the hub may send nothing before a request is abandoned and retried.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty" args:"<duration>" default:"1m"`
}

// Check checks the address, unless it is a placeholder, which is resolved only at the start.
func (h *Hub) Check() error {
	if strings.Contains(h.URL, "{") {
		return nil
	}
	return hub.Config{URL: h.URL}.Validate()
}
