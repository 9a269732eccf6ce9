package mcploop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Tool is a tool of an MCP server.
type Tool struct {
	Name        string
	Title       string // for people; may be empty
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object; empty if there is none
}

// Result is what a tool returned.
type Result struct {
	Content json.RawMessage // the content array of the MCP result, as compact JSON
	IsError bool            // the tool reports an error of its own
}

// Server is an MCP server whose tools can be called. Its methods may be called from any goroutine.
type Server interface {
	// Tools returns the tools of the server.
	Tools(ctx context.Context) ([]Tool, error)

	// Call calls a tool. args is a JSON object. An error means that the server failed: a tool's own error is a Result.
	Call(ctx context.Context, tool string, args json.RawMessage) (Result, error)
}

// Source is a server whose tools a chat may use.
type Source struct {
	Server   Server
	Provider translate.Provider // what clients are told of it
	Label    string             // by which its tools are told from those of others with the same names
	Param    string             // its place in the request

	NeedsApproval func() bool // whether its calls do, once its tools are known; nil: they don't

	Restricted bool     // only the Allowed tools are offered
	Allowed    []string // by name

	Explain func(error) *translate.Error // returns what clients are told of a failure of the server
}

// Toolbox has the tools that a model may call in one chat.
type Toolbox struct {
	MaxCalls int  // how many calls of servers' tools are made in all; 0: without a limit
	Single   bool // of the calls of a round only the first is taken, whether the server or the client makes it
	// Approval begins to wait for the approval of the call with an id. What it returns is whether the call may be made. nil: nobody can be asked,
	// and calls that need it are refused.
	Approval func(id string) (wait func(context.Context) bool)
	AsksAll  bool // all calls need approval, not only those of servers that want it

	tools   []request.Tool
	byName  map[string]*offer
	sources []Source
	caps    request.Caps
	media   request.MediaReader // of all results
}

// offer is a tool as the model knows it.
type offer struct {
	Tool
	source *Source // nil for a function of the client
}

// NewToolbox asks the servers for their tools. An error is about the first of the servers that failed, or about all tools together.
func NewToolbox(ctx context.Context, sources []Source, caps request.Caps) (*Toolbox, *translate.Error) {
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
	b := &Toolbox{byName: map[string]*offer{}, sources: sources, caps: caps}
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
			"The integrations have "+strconv.Itoa(len(offers))+" tools; at most "+strconv.Itoa(request.MaxTools)+` are allowed. `+
				`Choose some of them with "allowed_tools".`)
	}
	b.add(offers)
	return b, nil
}

// NewFunctions returns a toolbox without servers, for functions of the client.
func NewFunctions() *Toolbox { return &Toolbox{byName: map[string]*offer{}} }

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
		return nil, translate.BadValue(s.Param+".allowed_tools",
			`has no tool of the server "%s". Its tools are: %s.`, s.Label, listed(names))
	}
	return kept, nil
}

func (b *Toolbox) add(offers []*offer) {
	count := map[string]int{}
	for _, o := range offers {
		count[o.Name]++
	}
	var work schema.Work
	for _, o := range offers {
		name := o.Name
		if count[name] > 1 {
			name = prefixed(o, func(name string) bool { return count[name] > 0 || b.byName[name] != nil })
		}
		tool := request.NewTool(name, o.Description, gjson.ParseBytes(o.Schema), name, &work)
		tool.Server, tool.Bare = o.source.Label, o.Name
		b.tools = append(b.tools, tool)
		b.byName[name] = o
	}
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

// AddFunctions adds tools that the client calls by itself, which ends the loop. A server's tool of the same name gets its label in front.
func (b *Toolbox) AddFunctions(functions []request.Tool) {
	for _, function := range functions {
		if taken := b.byName[function.Name]; taken != nil && taken.source != nil {
			name := prefixed(taken, func(name string) bool {
				return b.byName[name] != nil || slices.ContainsFunc(functions, func(f request.Tool) bool { return f.Name == name })
			})
			b.byName[name] = taken
			tool := &b.tools[slices.IndexFunc(b.tools, func(t request.Tool) bool { return t.Name == function.Name })]
			renamed := request.NewTool(name, taken.Description, gjson.ParseBytes(taken.Schema), name, new(schema.Work))
			renamed.Server, renamed.Bare = tool.Server, tool.Bare
			*tool = renamed
		}
		b.tools = append(b.tools, function)
		b.byName[function.Name] = &offer{Tool: Tool{Name: function.Name}}
	}
}

// Lists returns the tools that are offered of each server.
func (b *Toolbox) Lists() []translate.ToolList {
	lists := make([]translate.ToolList, len(b.sources))
	for i := range b.sources {
		tools := []byte{'['}
		for _, tool := range b.tools {
			if o := b.byName[tool.Name]; o.source == &b.sources[i] {
				tools = o.append(jsonbody.AppendComma(tools))
			}
		}
		lists[i] = translate.ToolList{Server: b.sources[i].Label, Tools: append(tools, ']')}
	}
	return lists
}

// append appends the tool as its server describes it: its name, its input_schema and its description, if it has one.
func (o *offer) append(dst []byte) []byte {
	schema := o.Schema
	if len(schema) == 0 {
		schema = []byte(`{"type":"object","properties":{}}`)
	}
	dst = jsonbody.AppendString(append(dst, `{"name":`...), o.Name)
	dst = append(append(dst, `,"input_schema":`...), schema...)
	if o.Description != "" {
		dst = jsonbody.AppendString(append(dst, `,"description":`...), o.Description)
	}
	return append(dst, '}')
}

// IsEmpty reports whether there are no tools. A nil Toolbox is empty.
func (b *Toolbox) IsEmpty() bool { return b == nil || len(b.tools) == 0 }

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

// call calls a tool. If the server fails, it returns the failure, and a result that tells the model of it; neither if the context ends.
func (o *offer) call(ctx context.Context, args []byte) (Result, *translate.Error) {
	result, err := o.source.Server.Call(ctx, o.Name, args)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return Result{}, nil
	}
	trouble := o.source.Explain(err)
	return TextResult(trouble.Message, true), trouble
}

// TextResult is a result that is one text.
func TextResult(text string, isError bool) Result {
	content := jsonbody.AppendString([]byte(`[{"type":"text","text":`), text)
	return Result{Content: append(content, "}]"...), IsError: isError}
}

// Limits of the arguments of a call.
const (
	maxArgumentBytes  = 1 << 20
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
)

// refuse returns why a call with these arguments can't be made, for the model, so that it can correct it; empty if it can.
func (o *offer) refuse(args []byte) string {
	if len(args) > maxArgumentBytes {
		return fmt.Sprintf("The arguments have %d bytes; at most %d are allowed.", len(args), maxArgumentBytes)
	}
	s := jsonbody.Scanner{Data: args}
	s.Space()
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad != nil || s.Pos != len(args) || !jsonbody.IsObject(args) {
		return "The arguments are not a valid JSON object."
	}
	if s.Values > maxArgumentValues {
		return fmt.Sprintf("The arguments have more than %d values.", maxArgumentValues)
	}
	if len(o.Schema) == 0 {
		return ""
	}
	checker, err := schema.NewChecker(o.Schema)
	if err != nil { // the server checks its arguments itself
		return ""
	}
	if err = checker.Check(args); err == nil || errors.Is(err, schema.ErrTooManySteps) {
		return ""
	}
	return "The arguments don't fit the tool's schema: " + err.Error()
}
