package kit

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// modelNames returns the names by which models can be called: keys, with and without the publisher, and aliases that are no patterns.
func modelNames(ctx context.Context, c *client.Client) []string {
	models, _ := c.Models(ctx) // without names, there is no suggestion
	var names []string
	for _, m := range models.Models {
		names = append(names, m.Key)
		if _, bare, ok := strings.Cut(m.Key, "/"); ok {
			names = append(names, bare)
		}
		for _, alias := range m.Aliases {
			if !strings.ContainsAny(alias, `*?[\`) {
				names = append(names, alias)
			}
		}
	}
	return names
}

// instanceNames returns the names by which instances can be called: their ids, with and without the publisher.
func instanceNames(ctx context.Context, c *client.Client) []string {
	names := LoadedNames(ctx, c)
	for _, id := range names {
		if _, bare, ok := strings.Cut(id, "/"); ok {
			names = append(names, bare)
		}
	}
	return names
}

// LoadedNames returns the ids of the instances.
func LoadedNames(ctx context.Context, c *client.Client) []string {
	models, _ := c.Models(ctx) // as above
	return InstanceIDs(models, "")
}

// JobNames returns the ids of the downloads.
func JobNames(ctx context.Context, c *client.Client) []string {
	list, _ := c.Jobs(ctx) // as above
	names := make([]string, len(list.Jobs))
	for i := range list.Jobs {
		names[i] = list.Jobs[i].ID
	}
	return names
}

// TokenNames returns the ids of the tokens.
func TokenNames(ctx context.Context, c *client.Client) []string {
	tokens, _ := c.Tokens(ctx) // as above
	names := make([]string, len(tokens))
	for i := range tokens {
		names[i] = tokens[i].ID
	}
	return names
}

// InstanceIDs returns the instances of the models with a name, with or without the publisher; an empty name means all.
func InstanceIDs(models resource.Models, name string) []string {
	var ids []string
	for _, m := range models.Models {
		if name != "" && !GoesBy(m.Key, name) && !HasAlias(m.Aliases, name) {
			continue
		}
		for _, in := range m.Instances {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// GoesBy reports whether a name is a model's key, with or without the publisher.
func GoesBy(key, name string) bool {
	_, bare, _ := strings.Cut(key, "/")
	return strings.EqualFold(name, key) || strings.EqualFold(name, bare)
}

// HasAlias reports whether a name matches one of the aliases, which may be patterns.
func HasAlias(aliases []string, name string) bool {
	return slices.ContainsFunc(aliases, func(alias string) bool {
		matches, err := path.Match(alias, name)
		return err == nil && matches
	})
}
