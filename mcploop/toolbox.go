package mcploop

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Source is a server whose tools a chat may use.
type Source struct {
	Server   Server
	Provider translate.Provider // what clients are told of it
	Label    string             // by which its tools are told from those of others with the same names
	Param    string             // its place in the request

	Restricted bool     // only the Allowed tools are offered
	Allowed    []string // by name

	// Explain returns what clients are told of a failure of the server.
	Explain func(error) *translate.Error
}

// Toolbox has the tools that a model may call in one chat.
type Toolbox struct {
	tools  []request.Tool
	byName map[string]*offer
	caps   request.Caps
	images request.Images // of all results
}

// offer is a tool as the model knows it.
type offer struct {
	Tool
	source *Source
}

// NewToolbox asks the servers for their tools. Tools with invalid schemas are left out and logged. An error is about the
// first of the servers that failed, or about all tools together.
func NewToolbox(ctx context.Context, sources []Source, caps request.Caps, log *slog.Logger) (*Toolbox, *translate.Error) {
	found := make([][]Tool, len(sources))
	failed := make([]error, len(sources))
	var (
		asking sync.WaitGroup
		panics caught
	)
	for i := range sources {
		asking.Go(func() {
			defer panics.catch()
			found[i], failed[i] = sources[i].Server.Tools(ctx)
		})
	}
	asking.Wait()
	panics.repeat()
	b := &Toolbox{byName: map[string]*offer{}, caps: caps}
	var offers []*offer
	for i := range sources {
		s := &sources[i]
		if failed[i] != nil {
			return nil, s.Explain(failed[i])
		}
		kept, err := s.permitted(found[i])
		if err != nil {
			return nil, err
		}
		for _, tool := range kept {
			offers = append(offers, &offer{tool, s})
		}
	}
	if len(offers) > request.MaxTools {
		return nil, translate.Invalid("invalid_value", "integrations",
			"The integrations have "+strconv.Itoa(len(offers))+" tools; at most "+strconv.Itoa(request.MaxTools)+` are allowed. Choose some of them with "allowed_tools".`)
	}
	return b, b.add(offers, log)
}

// permitted returns the tools that the request allows.
func (s *Source) permitted(tools []Tool) ([]Tool, *translate.Error) {
	if !s.Restricted {
		return tools, nil
	}
	var kept []Tool
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
		if slices.Contains(s.Allowed, tool.Name) {
			kept = append(kept, tool)
		}
	}
	if len(kept) == 0 && len(s.Allowed) > 0 {
		return nil, translate.Invalid("invalid_value", s.Param+".allowed_tools",
			`"`+s.Param+`.allowed_tools" has no tool of the server "`+s.Label+`". Its tools are: `+listed(names)+".")
	}
	return kept, nil
}

// add offers tools to the model.
func (b *Toolbox) add(offers []*offer, log *slog.Logger) *translate.Error {
	count := map[string]int{}
	for _, o := range offers {
		count[o.Name]++
	}
	var work request.SchemaWork
	for _, o := range offers {
		name := o.Name
		if count[name] > 1 {
			name = prefixed(o, func(name string) bool { return count[name] > 0 || b.byName[name] != nil })
		}
		alone := request.SchemaWork{}
		parameters := gjson.ParseBytes(o.Schema)
		if _, bad := request.NewTool(name, o.Description, parameters, name, &alone); bad != nil {
			log.Warn("a tool of an MCP server is left out", "server", o.source.Label, "tool", o.Name, "reason", bad.Message)
			continue
		}
		tool, bad := request.NewTool(name, o.Description, parameters, name, &work)
		if bad != nil {
			return translate.Invalid("invalid_value", "integrations",
				`The schemas of the integrations' tools are too large together. Choose some of the tools with "allowed_tools".`)
		}
		b.tools = append(b.tools, tool)
		b.byName[name] = o
	}
	return nil
}

// prefixed returns a name with the label of the tool's server. It isn't one that is taken.
func prefixed(o *offer, isTaken func(string) bool) string {
	label := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, o.source.Label)
	name := label + "_" + o.Name
	for i := 2; isTaken(name); i++ {
		name = label + strconv.Itoa(i) + "_" + o.Name
	}
	return name
}

// IsEmpty reports whether there are no tools. A nil Toolbox is empty.
func (b *Toolbox) IsEmpty() bool { return b == nil || len(b.tools) == 0 }

// names returns the names that the model knows.
func (b *Toolbox) names() []string {
	names := make([]string, len(b.tools))
	for i, tool := range b.tools {
		names[i] = tool.Name
	}
	return names
}

// listed joins names for a message, a few of them if there are many.
func listed(names []string) string {
	const most = 50
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + ", and " + strconv.Itoa(len(names)-most) + " more"
	default:
		return strings.Join(names, ", ")
	}
}

// call calls a tool, and returns its result as an event without an index. trouble is the failure of the server, if it failed.
func (o *offer) call(ctx context.Context, args []byte) (Result, *translate.Error) {
	result, err := o.source.Server.Call(ctx, o.Name, args)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return Result{}, nil
	}
	trouble := o.source.Explain(err)
	text := jsonbody.AppendString([]byte(`[{"type":"text","text":`), trouble.Message)
	return Result{Content: append(text, "}]"...), IsError: true}, trouble
}
