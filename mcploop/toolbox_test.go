package mcploop

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

func named(names ...string) []Tool {
	var tools []Tool
	for _, name := range names {
		tools = append(tools, Tool{Name: name})
	}
	return tools
}

func TestToolbox_Names(t *testing.T) {
	t.Parallel()
	one, two, three := &server{tools: named("add", "sub")}, &server{tools: named("add", "one_add")}, &server{tools: named("add")}
	box := toolbox(t, one.source("one"), two.source("my server"), three.source("my.server"))
	want := map[string]string{
		"one2_add": "one", "sub": "one", "my_server_add": "my server", "one_add": "my server", "my_server2_add": "my.server",
	}
	got := map[string]string{}
	for name, o := range box.byName {
		got[name] = o.source.Label
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if box.byName["one2_add"].Name != "add" {
		t.Errorf("the server would be asked for %q", box.byName["one2_add"].Name)
	}
}

func TestToolbox_AllowedTools(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		allowed []string
		want    []string
		err     string
	}{
		"one":             {[]string{"sub"}, []string{"sub"}, ""},
		"one of no use":   {[]string{"sub", "fly"}, []string{"sub"}, ""},
		"none":            {nil, nil, ""},
		"only of no use":  {[]string{"fly"}, nil, "Its tools are: add, sub."},
		"all, repeatedly": {[]string{"sub", "add", "add"}, []string{"add", "sub"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&server{tools: named("add", "sub")}).source("maths")
			s.Restricted, s.Allowed = true, tt.allowed
			box, err := NewToolbox(t.Context(), []Source{s}, request.Caps{})
			if err != nil {
				if tt.err == "" || !strings.Contains(err.Message, tt.err) || err.Param != "integrations[0].allowed_tools" {
					t.Errorf("%+v", err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, box.names(), cmp.Transformer("", func(s []string) string { return strings.Join(s, ",") })); diff != "" || tt.err != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestToolbox_Schemas: no schema of a server keeps its tools from the model.
func TestToolbox_Schemas(t *testing.T) {
	t.Parallel()
	bomb := `{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"anyOf":[`
	bomb += strings.Repeat(`{"type":"string"},`, 19_000) + `{"type":"null"}]}}}`
	large := `{"type":"object","properties":{"x":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 9_500) + `{"type":"null"}]}}}`
	tools := func(schemas ...string) []Tool {
		all := named("fine")
		for i, schema := range schemas {
			all = append(all, Tool{Name: string(rune('a' + i)), Schema: json.RawMessage(schema)})
		}
		return all
	}
	kept := (&server{tools: tools(bomb+bomb, `{"type":"array"}`, `{"$ref":"https://example.org/"}`, `{"type":"object","properties":{"a":{"pattern":"(a{999}){999}"}}}`, large)}).source("s")
	if got := toolbox(t, kept).names(); len(got) != 6 {
		t.Errorf("the tools are %v", got)
	}
	many := (&server{tools: tools(large, large, large, large, large, large, large)}).source("s")
	if got := toolbox(t, many).names(); len(got) != 8 {
		t.Errorf("the tools are %v", got)
	}
	crowd := (&server{tools: named(strings.Fields(strings.Repeat("a ", 1025))...)}).source("s")
	if _, err := NewToolbox(t.Context(), []Source{crowd}, request.Caps{}); err == nil || !strings.Contains(err.Message, "1025 tools") {
		t.Errorf("%+v", err)
	}
}

func TestToolbox_AServerThatFails(t *testing.T) {
	t.Parallel()
	good, bad := &server{tools: named("a")}, &server{err: errors.New("It is away.")}
	_, err := NewToolbox(t.Context(), []Source{good.source("good"), bad.source("bad")}, request.Caps{})
	if err == nil || err.Message != "It is away." {
		t.Errorf("%+v", err)
	}
}
