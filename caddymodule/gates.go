package caddymodule

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/node"
)

// The gates that `allow` opens.
const (
	gateEphemeral = "ephemeral_mcp"
	gatePlugin    = "plugin_mcp"
	gateRemote    = "remote_mcp"
	gateGrammar   = "raw_grammar"
)

// Gates lists the values of the option allow.
var Gates = []string{gateEphemeral, gatePlugin, gateRemote, gateGrammar}

func (a *App) gates() node.Gates {
	return node.Gates{
		EphemeralMCP: slices.Contains(a.Allow, gateEphemeral),
		PluginMCP:    slices.Contains(a.Allow, gatePlugin),
		RemoteMCP:    slices.Contains(a.Allow, gateRemote),
		RawGrammar:   slices.Contains(a.Allow, gateGrammar),
	}
}

// allow reads the option allow.
func (a *App) allow(d *caddyfile.Dispenser) error {
	from := len(a.Allow)
	if err := someArgs(d, &a.Allow); err != nil {
		return err
	}
	for _, gate := range a.Allow[from:] {
		if !slices.Contains(Gates, gate) {
			return d.Errf("allow: there is no gate %q; there are %v", gate, Gates)
		}
	}
	return nil
}
