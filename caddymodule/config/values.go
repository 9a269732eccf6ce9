package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/machine"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Budget is a share of memory, such as 85%, or a size, such as 20GiB.
type Budget string

// UnmarshalText checks and sets it.
func (b *Budget) UnmarshalText(text []byte) error {
	*b = Budget(text)
	_, err := b.Node()
	return err
}

// Node returns it as a node has it.
func (b Budget) Node() (node.Budget, error) {
	if percent, ok := strings.CutSuffix(string(b), "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(n > 0 && n <= 100) {
			return node.Budget{}, fmt.Errorf("%q is not a share between 0%% and 100%%", string(b))
		}
		return node.Budget{Share: n / 100}, nil
	}
	n, err := humanize.ParseBytes(string(b))
	if err != nil || n < 1 || n > 1<<60 || option.IsBare(string(b), n) {
		return node.Budget{}, fmt.Errorf("%q is neither a share, such as 85%%, nor a size with its unit, such as 20GiB", string(b))
	}
	return node.Budget{Bytes: int64(n)}, nil
}

// Host is the name or the address of a host, in its normal form.
type Host string

// UnmarshalText brings it into its normal form.
func (h *Host) UnmarshalText(text []byte) error {
	name := machine.Normal(string(text))
	ip, err := netip.ParseAddr(name)
	isAddress := err == nil && ip.String() == name
	if !isAddress && (name == "" || strings.ContainsAny(name, "*/:[]{}@ ")) {
		return fmt.Errorf("%q is not a name or an address of a host, such as server.lan or 192.168.1.7, without a port", name)
	}
	*h = Host(name)
	return nil
}

// Names returns hosts as strings.
func Names(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = string(h)
	}
	return names
}

// Presets are defaults of requests, by name.
type Presets map[string]node.Preset

// String returns the names.
func (p Presets) String() string { return option.Words(slices.Sorted(maps.Keys(p))) }

// UnmarshalCaddyfile reads
//
//	preset <name> {
//		system_prompt <text>
//		<field> <value...>
//	}
//
// A value that is JSON is taken as such; any other is a string. Several values are an array of them.
func (p *Presets) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	var name string
	if !d.Args(&name) || d.NextArg() {
		return d.ArgErr()
	}
	preset := node.Preset{}
	maps.Copy(preset, (*p)[name])
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		field := d.Val()
		values := d.RemainingArgs()
		isObject := d.Errf("preset %s: %s: a value that is an object is written as JSON, in backticks", name, field) // names this line
		switch {
		case d.NextBlock(d.Nesting()):
			return isObject
		case len(values) == 0:
			return d.ArgErr()
		case field == request.SystemPrompt && len(values) > 1:
			return d.ArgErr()
		case field == request.SystemPrompt:
			preset[field] = caddyconfig.JSON(values[0], nil)
		default:
			preset[field] = presetValue(values)
		}
	}
	if *p == nil {
		*p = Presets{}
	}
	(*p)[name] = preset
	return nil
}

func presetValue(words []string) json.RawMessage {
	values := make([]json.RawMessage, len(words))
	for i, word := range words {
		if json.Valid([]byte(word)) {
			values[i] = json.RawMessage(word)
		} else {
			values[i] = caddyconfig.JSON(word, nil)
		}
	}
	if len(values) == 1 {
		return values[0]
	}
	return caddyconfig.JSON(values, nil)
}

// InForce returns what the configuration says, and what is in force where it says nothing. The hubs are those of the node's settings.
func (s *Settings) InForce(hubs []hub.Config) resource.Configuration {
	c := resource.Configuration{
		Home: s.home(), ModelsDirs: append([]string{}, s.ModelsDirs...), Settings: option.InForce(s), Engines: []resource.Block{},
		Models: []resource.Block{},
	}
	if i := slices.IndexFunc(c.Settings, func(o resource.Setting) bool { return o.Name == "home" }); s.Home == "" {
		c.Settings[i].Value = c.Home
		if user, err := os.UserHomeDir(); err == nil && c.Home != filepath.Join(user, ".lmcaddy") {
			c.Settings[i].Source = resource.FromEnvironment
		}
	}
	at, _ := slices.BinarySearchFunc(c.Settings, "hub", func(o resource.Setting, name string) int { return strings.Compare(o.Name, name) })
	c.Settings = slices.Insert(c.Settings, at, s.hubsInForce(hubs))
	for _, described := range node.BuiltIn() {
		var shown Engine
		if e := s.Engines[described.Name]; e != nil {
			shown = *e
		}
		if len(shown.Command) > 0 { // which stands for the path
			shown.Path, shown.Command = option.Words(shown.Command), nil
		}
		settings := slices.DeleteFunc(option.InForce(&shown), func(o resource.Setting) bool {
			return o.Name == "sandbox" && described.NoSandbox != ""
		})
		c.Engines = append(c.Engines, resource.Block{Name: described.Name, Settings: settings})
	}
	for i := range s.Remotes {
		c.Remotes = append(c.Remotes, resource.Block{Name: s.Remotes[i].name(), Settings: option.InForce(&s.Remotes[i])})
	}
	for _, key := range slices.Sorted(maps.Keys(s.Models)) {
		if m := s.Models[key]; m != nil {
			c.Models = append(c.Models, resource.Block{Name: key, Settings: option.Set(m)})
		}
	}
	return c
}

func (s *Settings) home() string {
	if s.Home != "" {
		return home.Absolute(s.Home)
	}
	dir, _ := home.FromEnvironment() // empty if none is known
	return string(dir)
}

// hubsInForce are the addresses of the hubs, without their tokens.
func (s *Settings) hubsInForce(hubs []hub.Config) resource.Setting {
	set := resource.Setting{Name: "hub", Source: resource.FromFile}
	switch {
	case len(s.Hubs) > 0:
	case os.Getenv(hubVariable) != "" || os.Getenv(tokenVariable) != "":
		set.Source = resource.FromEnvironment
	default:
		set.Source = resource.FromDefault
	}
	var all []string
	for _, h := range hubs {
		said := option.WithoutPassword(h.URL)
		if h.Token != "" {
			said += " (with a token)"
		}
		all = append(all, said)
	}
	set.Value = strings.Join(all, ", ")
	return set
}
