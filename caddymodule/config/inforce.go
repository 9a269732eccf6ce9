package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

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
