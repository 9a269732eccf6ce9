package caddymodule

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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
	URL string `json:"url"`

	// The token that requests to this hub have, and no other. It may be a placeholder, such as {env.HF_TOKEN}. Default: none.
	Token string `json:"token,omitempty"`

	// How long the hub may send nothing before a request is abandoned and retried. Default: 1m.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty"`
}

// hub reads the option hub.
func (a *App) hub(d *caddyfile.Dispenser) error {
	var h Hub
	if err := oneArg(d, &h.URL); err != nil {
		return err
	}
	if !strings.Contains(h.URL, "{") { // a placeholder is resolved only at the start
		if err := (fetch.Hub{URL: h.URL}).Validate(); err != nil {
			return d.WrapErr(err)
		}
	}
	for _, other := range a.Hubs {
		if other.URL == h.URL {
			return d.Errf("hub %s: it is configured already", h.URL)
		}
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "token":
			if err := oneArg(d, &h.Token); err != nil {
				return err
			}
		case "stall_timeout":
			if err := timeout(d, &h.StallTimeout); err != nil {
				return err
			}
		default:
			return unknownOption(d, "hub "+h.URL, hubOptions)
		}
	}
	a.Hubs = append(a.Hubs, h)
	return nil
}

// hubs puts the hubs into the settings. Without any, the environment names one.
func (a *App) hubs(replace *caddy.Replacer) error {
	for _, h := range a.Hubs {
		address, err := replace.ReplaceOrErr(h.URL, true, true)
		if err != nil {
			return fmt.Errorf("hub %s: %w", h.URL, err)
		}
		token, err := replace.ReplaceOrErr(h.Token, false, true)
		if err != nil {
			return fmt.Errorf("hub %s: its token: %w", address, err)
		}
		if h.Token != "" && token == "" {
			a.log.Warn("the hub is asked without a token: its placeholder is empty", "hub", address)
		}
		a.settings.Hubs = append(a.settings.Hubs, fetch.Hub{URL: address, Token: token, Stall: time.Duration(h.StallTimeout)})
	}
	if len(a.Hubs) > 0 {
		return nil
	}
	mirror := os.Getenv(hubVariable)
	h := fetch.Hub{URL: cmp.Or(mirror, fetch.PublicHub), Token: os.Getenv(tokenVariable), Mirror: mirror != ""}
	if err := h.Validate(); err != nil {
		return fmt.Errorf("the environment variable %s: %w", hubVariable, err)
	}
	a.settings.Hubs = []fetch.Hub{h}
	return nil
}
