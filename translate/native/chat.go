// Package native implements the dialect of the native chat, POST /api/v1/chat.
package native

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Chat is a request of the native chat, POST /api/v1/chat.
type Chat struct {
	Input         translate.Item // the user's message
	System        *string        // replaces the conversation's system prompt unless it is nil
	Previous      string         // id of the response to continue; empty if there is none
	Store         bool
	StorePartial  bool   // also what was generated before the client disconnected
	Background    bool   // the answer is made whether or not the client waits for it
	ToolApproval  bool   // calls of tools wait for an approval
	Prefill       string // with which the answer begins
	ContextLength int    // in tokens, if the request loads the model; 0 if not given
	Integrations  []request.MCPServer
	Chat          request.Chat // for the wire of the engine

	edit jsonbody.Edit // fields of the engine's request
}

// ParseChat parses a request of the native chat. It rejects invalid requests, and those that the model can't serve, before
// anything is loaded.
func ParseChat(body *jsonbody.Body, model string, caps request.Caps) (*Chat, *translate.Error) {
	c := &Chat{Chat: request.Chat{N: 1}}
	if err := body.Parse(c.parseConversation, c.parseFields, c.parseIntegrations); err != nil {
		return nil, err
	}
	if err := c.parseReasoning(body, model, caps); err != nil {
		return nil, err
	}
	fields := body.Fields()
	if c.Prefill = fields.Text("prefill"); fields.Err != nil {
		return nil, fields.Err
	}
	c.Chat.Thinks = caps.Thinks() && jsonbody.Unquote(body.Value("reasoning")) != "off" && c.Prefill == ""
	if c.Prefill != "" { // whoever has begun to answer thinks no more
		caps.SetSilent(&c.edit)
	}
	var err *translate.Error
	c.Input, err = parseInput(body, caps)
	return c, err
}

// Upstream returns the chat request of a conversation, with tools that the model may call, for the wire of an engine.
func (c *Chat) Upstream(conversation []translate.Item, tools []request.Tool) (*jsonbody.Body, *translate.Error) {
	messages := request.MessagesOf(conversation)
	var own jsonbody.Edit
	if len(tools) > 0 {
		own.SetLarge("tools", request.Definitions(tools))
	}
	return messages.Body(own.Apply(&jsonbody.Body{}), c.edit.Apply(&jsonbody.Body{}))
}

// Names of fields used in several places.
const (
	limitField       = "max_output_tokens"
	previousResponse = "previous_response_id"
)

// responsePrefix starts the ids of stored responses.
const responsePrefix = "resp_"

func (c *Chat) parseConversation(body *jsonbody.Body) *translate.Error {
	b := body.Fields()
	if system := b.Text("system_prompt"); jsonbody.IsGiven(b.Get("system_prompt")) {
		c.System = &system
	}
	c.Previous = b.Text(previousResponse)
	if jsonbody.IsGiven(b.Get(previousResponse)) && !strings.HasPrefix(c.Previous, responsePrefix) {
		b.Refuse(translate.BadValue(previousResponse,
			`must be the id of an earlier response; those start with "%s".`, responsePrefix))
	}
	c.Store, c.Background = b.BoolOr("store", true), b.Bool("background")
	c.StorePartial = b.Bool("store_partial") && c.Store
	if c.Background && !c.Store {
		b.Refuse(translate.Invalid("invalid_value", "background",
			`An answer in the background has to be stored: leave out "store", or "background".`))
	}
	if c.ToolApproval = b.Bool("tool_approval"); c.ToolApproval && !c.Background {
		b.Refuse(translate.Invalid("invalid_value", "tool_approval",
			`An answer whose calls wait for approval has to be made in the background: send "background": true, or leave out "tool_approval".`))
	}
	return b.Err
}

// numbers are the numeric fields of the native chat.
var numbers = []request.Number{
	{Name: "temperature", Max: 1, As: "temperature"},
	{Name: "top_p", Max: 1, As: "top_p"},
	{Name: "min_p", Max: 1, As: "min_p"},
	{Name: "top_k", Min: -1, Max: math.MaxInt32, Whole: true, As: "top_k"}, // -1 is how LM Studio's clients turn it off
	{Name: "repeat_penalty", Max: math.MaxInt32, Above: true, As: "repeat_penalty"},
	{Name: limitField, Min: 1, Max: math.MaxInt32, Whole: true, As: "max_tokens"},
	{Name: "context_length", Min: 1, Max: math.MaxInt32, Whole: true},
}

// others are fields that the specification doesn't have but engines support.
var others = []string{"seed", "presence_penalty", "frequency_penalty", "logit_bias"}

func (c *Chat) parseFields(body *jsonbody.Body) (err *translate.Error) {
	if err = request.CopyFields(body, &c.edit, numbers, others...); err == nil {
		c.ContextLength = int(body.Get("context_length").Num)
		c.Chat.Stops, err = request.ParseStops("stop", body.Get("stop"))
	}
	return err
}

func (c *Chat) parseReasoning(body *jsonbody.Body, model string, caps request.Caps) *translate.Error {
	const name = "reasoning"
	fields := body.Fields()
	setting := fields.Text(name)
	switch {
	case fields.Err != nil:
		return fields.Err
	case !jsonbody.IsGiven(body.Value(name)):
		return nil
	}
	c.Chat.Setting = request.Setting{Model: model, Word: setting}
	if offered := caps.Reasoning; offered == nil { // the model's engine knows, once it has loaded the model
		if err := c.Chat.Setting.Check(request.ReasoningWords); err != nil {
			return err
		}
	} else if err := c.Chat.Setting.Check(offered); err != nil {
		return err
	}
	switch setting {
	case "off":
		c.edit.Set("chat_template_kwargs", request.ThinkingOff)
		c.edit.Set("reasoning_effort", `"none"`)
	case "on":
		caps.SetThinking(&c.edit, "")
	default:
		c.edit.Set("reasoning_effort", `"`+setting+`"`)
	}
	return nil
}

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults. A system prompt is added only at the start of a conversation.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	native := make(map[string]json.RawMessage, len(defaults))
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name := key
		if slices.Contains(request.Limits, key) {
			name = limitField
		}
		if native[name] == nil && (name == key || defaults[name] == nil) { // the native name takes precedence
			native[name] = defaults[key]
		}
	}
	return request.WithDefaults(b, chosenBy, native, func(name string) bool {
		return name == request.SystemPrompt && jsonbody.IsGiven(b.Value(previousResponse)) || jsonbody.IsGiven(b.Value(name))
	})
}

// pluginPrefix starts the ids of the servers of mcp.json.
const pluginPrefix = "mcp/"

// parseIntegrations parses the MCP servers. It doesn't decide which of them are permitted.
func (c *Chat) parseIntegrations(body *jsonbody.Body) *translate.Error {
	const name = "integrations"
	v := body.Get(name)
	all := jsonbody.AtMost(request.MaxServers, v)
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return jsonbody.WrongType(name, "an array", v)
	case len(all) > request.MaxServers:
		return translate.BadValue(name, "must hold at most %d integrations.", request.MaxServers)
	}
	for i, one := range all {
		server := request.MCPServer{Param: name + "[" + strconv.Itoa(i) + "]"}
		if err := parseIntegration(&server, one); err != nil {
			return err
		}
		if server.Provider.Server = server.Label; server.Plugin != "" {
			server.Provider = translate.Provider{Plugin: pluginPrefix + server.Plugin}
		}
		for _, other := range c.Integrations {
			if other.Provider == server.Provider {
				return translate.BadValue(server.Param, `is the same as "%s": name each server once.`, other.Param)
			}
		}
		c.Integrations = append(c.Integrations, server)
	}
	return nil
}

func parseIntegration(server *request.MCPServer, v gjson.Result) *translate.Error {
	where := server.Param
	switch {
	case v.Type == gjson.String:
		return parsePlugin(server, where, v.Str)
	case !v.IsObject():
		return jsonbody.WrongType(where, "a string or an object", v)
	}
	r := jsonbody.Read(where, []byte(v.Raw))
	var err *translate.Error
	switch kind := r.Given("type"); kind {
	case "plugin":
		if id := r.Given("id"); r.Err == nil {
			err = parsePlugin(server, r.At("id"), id)
		}
	case "ephemeral_mcp":
		server.Label, server.URL = r.Name("server_label"), r.Required("server_url")
		server.Headers, err = request.Headers(r.At("headers"), v.Get("headers"))
	default:
		err = translate.BadValue(r.At("type"), `must be "plugin" or "ephemeral_mcp".`)
	}
	r.Refuse(err)
	if allowed := v.Get("allowed_tools"); r.Err == nil && allowed.Type != gjson.Null {
		server.Restricted = true
		server.Allowed, r.Err = request.AllowedTools(r.At("allowed_tools"), allowed)
	}
	return r.Err
}

func parsePlugin(server *request.MCPServer, where, id string) *translate.Error {
	label, ok := strings.CutPrefix(id, pluginPrefix)
	if !ok || label == "" {
		return &translate.Error{
			Kind: translate.KindPluginFailed, Code: "invalid_value", Param: where,
			Message: `"` + where + `" must be the id of a plugin, such as "` + pluginPrefix + `label" for the server "label" of mcp.json.`,
		}
	}
	server.Plugin = label
	return nil
}
