package config

import (
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

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

	// The token that requests to this hub have, and no other. It may be a placeholder, such as {env.HF_TOKEN}. Default: none.
	Token string `json:"token,omitempty" args:"<token>" secret:"all"`

	// How long the hub may send nothing before a request is abandoned and retried.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty" args:"<duration>" default:"1m"`
}

// Check checks the address, unless it is a placeholder, which is resolved only at the start.
func (h *Hub) Check() error {
	if strings.Contains(h.URL, "{") {
		return nil
	}
	return fetch.Hub{URL: h.URL}.Validate()
}
