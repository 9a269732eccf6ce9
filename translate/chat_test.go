package translate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

const (
	plainly = `"stream":true,"return_progress":true,"stream_options":{"include_usage":true}`
	asked   = plainly + `,"timings_per_token":true` // of a model that may think
	hello   = `"messages":[{"role":"user","content":"Hello"}]`
)

// upstream returns the engine's request for a chat.
func upstream(t *testing.T, body string, caps request.Caps) ([]byte, *translate.Error) {
	t.Helper()
	b := testkit.Scan(t, body)
	chat, err := openai.ParseChat(b, caps)
	if err != nil {
		return nil, err
	}
	return bytes.Join(llamaserver.Wire{}.Chat(b, chat, 0).Body, nil), nil
}

// tinyPNG is a picture of one testkit.Pixel, in base64.
const tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="

// call returns a call of the tool a in an engine's request. The arguments are the contents of a JSON string.
func call(arguments string) string {
	return `{"type":"function","function":{"name":"a","arguments":"` + arguments + `"}}`
}

// demanded returns the fields by which an engine must call a tool without a schema.
func demanded(tool string) string {
	format, _ := new(request.Chat).Force([]request.Tool{{Name: tool}})
	return `"response_format":` + format + `,"max_tokens":16384,`
}

func TestChat_EnginesRequest(t *testing.T) {
	t.Parallel()
	blind, sees := capsOf(request.Caps{}), capsOf(request.Caps{Vision: true})
	image := `"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + tinyPNG + `"}}]}]`
	tests := map[string]struct {
		body string
		caps request.Caps
		want string
	}{
		"fields are added": {`{` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"stream false":     {`{"stream":false,` + hello + `}`, blind, `{"stream":true,` + hello + `,"return_progress":true,"stream_options":{"include_usage":true},"timings_per_token":true}`},
		"stream null":      {`{` + hello + `,"stream":null}`, blind, `{` + hello + `,` + asked + `}`},
		"own options": {
			`{"stream_options":{"include_usage":false,"x":1},"return_progress":false,` + hello + `,"stream":true}`, blind,
			`{"stream_options":{"include_usage":true},"return_progress":true,` + hello + `,"stream":true,"timings_per_token":true}`,
		},
		"ttl is ours": {`{"ttl":300,` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"unknown fields": {
			`{"x_new": {"b":1.50,"a":[ 1e2 ],"n":"\u00e9\/"} ,` + hello + `,"temperature":0.70,"id_slot":1,"n_cmpl":9,"lora":[],"cache_prompt":false,"metadata":{"a":"b"}}`, blind,
			`{` + hello + `,"temperature":0.70,` + asked + `}`,
		},
		"fields that shape the sampling": {
			`{` + hello + `,"min_p":0.1,"typical_p":1,"dry_multiplier":0.8,"mirostat":2,"samplers":["top_k","min_p"],"logit_bias":{"5":-100,"7":false},"seed":-1.0}`, blind,
			`{` + hello + `,"min_p":0.1,"typical_p":1,"dry_multiplier":0.8,"mirostat":2,"samplers":["top_k","min_p"],"logit_bias":{"5":-100,"7":false},"seed":-1,` + asked + `}`,
		},
		"windows of penalties": {
			`{` + hello + `,"repeat_last_n":2000000000,"dry_penalty_last_n":-1}`,
			capsOf(request.Caps{MaxContext: 512}),
			`{` + hello + `,"repeat_last_n":512,"dry_penalty_last_n":512,` + asked + `}`,
		},
		"stops that are empty":      {`{` + hello + `,"stop":["","a"]}`, blind, `{` + hello + `,` + asked + `}`},
		"a stop that is empty":      {`{` + hello + `,"stop":""}`, blind, `{` + hello + `,` + asked + `}`},
		"the penalty's other name":  {`{` + hello + `,"repetition_penalty":1.1}`, blind, `{` + hello + `,"repeat_penalty":1.1,` + asked + `}`},
		"a grammar that is allowed": {`{` + hello + `,"grammar":"root ::= \"a\""}`, capsOf(request.Caps{RawGrammar: true}), `{` + hello + `,"grammar":"root ::= \"a\"",` + asked + `}`},
		"n is one":                  {`{"n":1,` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"n is two":                  {`{"n":2,` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"draft is ours":             {`{"draft_model":"d",` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"no limit":                  {`{"max_tokens":-7,"max_completion_tokens":-1,` + hello + `}`, blind, `{"max_tokens":-1,"max_completion_tokens":-1,` + hello + `,` + asked + `}`},
		"n is null":                 {`{"n":null,` + hello + `}`, blind, `{` + hello + `,` + asked + `}`},
		"image for vision":          {`{` + image + `}`, sees, `{` + image + `,` + asked + `}`},
		"image_url in text": {
			`{"messages":[{"role":"user","content":"what is \"type\":\"image_url\"?"}]}`, blind,
			`{"messages":[{"role":"user","content":"what is \"type\":\"image_url\"?"}],` + asked + `}`,
		},
		"image_url in a text part": {
			`{"messages":[{"role":"user","content":[{"type":"text","text":"image_url"}]}]}`, blind,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"image_url"}]}],` + asked + `}`,
		},
		"an image's URL alone": {
			`{"messages":[{"role":"user","content":[{"type":"image\u005furl","image_url":"data:image/png;base64,` + tinyPNG + `","detail":"low"}]}]}`, sees,
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + tinyPNG + `"}}]}],` + asked + `}`,
		},
		"what isn't known of a message": {
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","cache_control":{},"reasoning":"r","refusal":null},{"role":"user","cont\u0065nt":"c"}]}`, blind,
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"r"},{"role":"user","content":"c"}],` + asked + `}`,
		},
		"a tool by its name": {
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}, {"type":"function","function":{"name":"b"}}],"tool_choice":{"type":"function","function":{"name":"b"}}}`, blind,
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"b"}}],"tool_choice":"none",` + demanded("b") + asked + `}`,
		},
		"tools that are allowed": {
			`{` + hello + `,"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}},{"function":{"name":"c"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"c"}},{"type":"function","function":{"name":"a"}}]}}}`, blind,
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"c"}}],` + asked + `}`,
		},
		"calls without arguments": {
			`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":""}},{"function":{"name":"a","arguments": ""}},{"function":{"name":"a","arguments":"{}"}}]},{"role":"tool","content":"\"arguments\":\"\""}]}`, blind,
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[` + call("{}") + `,` + call("{}") + `,` + call("{}") + `]},{"role":"tool","content":"\"arguments\":\"\""}],` + asked + `}`,
		},
		"calls whose arguments are no object": {
			`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"a","arguments":"{\"b\":"}},{"function":{"name":"a","arguments":"7"}},{"function":{"name":"a","arguments":{"x":1}}},{"function":{"name":"a"}}]}]}`, blind,
			`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"eqvNplxma",` + call(`{\"arguments\":\"{\\\"b\\\":\"}`)[1:] + `,` + call(`{\"arguments\":\"7\"}`) + `,` + call(`{\"x\":1}`) + `,` + call("{}") + `]}],` + asked + `}`,
		},
		"no tools":       {`{` + hello + `,"tools":[{"function":{"name":"a"}}],"tool_choice":"none"}`, blind, `{` + hello + `,` + asked + `}`},
		"required tools": {`{` + hello + `,"tools":[{"function":{"name":"a"}}],"tool_choice":"required"}`, blind, `{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"none",` + demanded("a") + asked + `}`},
		"a format beside tools": {
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}}}}`, blind,
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"response_format":{"type":"json_schema","json_schema":{"schema":{` +
				`"anyOf":[{"type":"object","properties":{"name":{"const":"a"},"arguments":{"type":"object","properties":{},"additionalProperties":false}},"required":["name","arguments"],"additionalProperties":false},{"$ref":"#/$defs/answer0"}],` +
				`"$defs":{"answer0":{"type":"object"}}}}},"tool_choice":"none",` + asked + `}`,
		},
		"any object beside tools": {
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"response_format":{"type":"json_object"}}`, blind,
			`{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"response_format":{"type":"json_schema","json_schema":{"schema":{` +
				`"anyOf":[{"type":"object","properties":{"name":{"const":"a"},"arguments":{"type":"object","properties":{},"additionalProperties":false}},"required":["name","arguments"],"additionalProperties":false},{"type":"object"}]` +
				`}}},"tool_choice":"none",` + asked + `}`,
		},
		"a schema in its place": {
			`{"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":"true","schema":{"type":"object"}}},` + hello + `}`, blind,
			`{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},` + hello + `,` + asked + `}`,
		},
		"a schema without its holder": {
			`{"response_format":{"type":"json_schema","schema":{"type":"object"}},` + hello + `}`, blind,
			`{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},` + hello + `,` + asked + `}`,
		},
		"effort that models offer": {`{"reasoning_effort":"low",` + hello + `}`, blind, `{"reasoning_effort":"low",` + hello + `,` + asked + `}`},
		"effort next to one":       {`{"reasoning_effort":"xhigh",` + hello + `}`, blind, `{"reasoning_effort":"high",` + hello + `,` + asked + `}`},
		"effort of another model":  {`{"reasoning_effort":"none",` + hello + `}`, capsOf(request.Caps{Reasoning: []string{"medium", "high"}}), `{"reasoning_effort":"medium",` + hello + `,` + asked + `}`},
		"effort in vain":           {`{"reasoning_effort":"high",` + hello + `}`, capsOf(request.Caps{Reasoning: []string{}}), `{` + hello + `,` + plainly + `}`},
		"nulls": {
			`{"temperature":null,"tools":null,"stop":null,"max_tokens":null,"tool_choice":null,"response_format":null,"reasoning_effort":null,` + hello + `}`, blind,
			`{` + hello + `,` + asked + `}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := upstream(t, tt.body, tt.caps)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChat_Refuses(t *testing.T) {
	t.Parallel()
	unseen := func(where, is string) *translate.Error {
		return translate.Invalid("unsupported_content", where, `"`+where+`" is `+is+` The server's option "unsupported_content omit" leaves such content out, with a note to the model.`)
	}
	const noVision = "an image, and the model does not take images: choose a model with vision, or send none."
	noImages := unseen("messages[0].content[0].image_url.url", noVision)
	noImagesBehind := unseen("messages[1].content[1].image_url", noVision)
	noChoices := translate.Invalid("invalid_value", "n", `"n" must be from 1 to 10000.`)
	remote := func(where string) *translate.Error {
		return translate.Invalid("invalid_image_url", where, `"`+where+`" must be a base64 data URL of an image, such as "data:image/png;base64,…": this server fetches no images.`)
	}
	messages := func(typ string) *translate.Error {
		return translate.Invalid("invalid_type", "messages", `"messages" must be an array, not `+typ+`.`)
	}
	tests := map[string]struct {
		body string
		want *translate.Error
	}{
		"no messages":        {`{"model":"m"}`, translate.Invalid("missing_required_parameter", "messages", `"messages" is required`)},
		"messages are none":  {`{"messages":[ ]}`, translate.Invalid("invalid_value", "messages", `"messages" must hold at least one message.`)},
		"messages null":      {`{"messages":null}`, messages("null")},
		"messages a string":  {`{"messages":"Hello"}`, messages("a string")},
		"messages an object": {`{"messages":{"role":"user","content":"Hello"}}`, messages("an object")},
		"messages a number":  {`{"messages":7}`, messages("the number 7")},
		"image":              {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, noImages},
		"image behind text": {
			`{"messages":[{"role":"user","content":"image_url"},{"role":"user","content":[{"type":"text","text":"a"},{"image_url":"data:,","typ\u0065":"image_url"},{"type":"text"}]},{"role":"user","content":"x"}]}`,
			noImagesBehind,
		},
		"a video":                {`{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:,"}}]}]}`, unseen("messages[0].content[0]", "of the kind video, which this server does not take: send text or images.")},
		"a part of no type":      {`{"messages":[{"role":"user","content":[{"text":"a"}]}]}`, translate.Invalid("invalid_value", "messages[0].content[0].type", `"messages[0].content[0].type" must be "text", "image_url" or "input_audio".`)},
		"messages that are none": {`{"messages":["image_url"]}`, translate.Invalid("invalid_type", "messages[0]", `"messages[0]" must be an object, not a string.`)},
		"a message of no role":   {`{"messages":[{"content":"a"}]}`, translate.Missing("messages[0].role")},
		"a role that is unknown": {`{"messages":[{"role":"User","content":"a"}]}`, translate.Invalid("invalid_value", "messages[0].role", `"messages[0].role" must be "system", "developer", "user", "assistant" or "tool", not "User".`)},
		"two answers begun": {`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","content":null}]}`, translate.Invalid("invalid_value", "messages",
			`The last two of the "messages" are the assistant's, but only one can be the beginning of the answer: make one message of them, or add one of the user's.`)},
		"log probabilities of calls": {`{"logprobs":true,"tools":[{"function":{"name":"f"}}],` + hello + `}`, translate.Invalid("invalid_value", "logprobs",
			`"logprobs" and "tools" can't be combined: leave out one of them, or set "tool_choice" to "none".`)},
		"a message of nothing":      {`{"messages":[{"role":"user"}]}`, translate.Missing("messages[0].content")},
		"a call of nothing":         {`{"messages":[{"role":"assistant","tool_calls":[{"type":"image_url"}]}]}`, translate.Missing("messages[0].tool_calls[0].function.name")},
		"a window of less than all": {`{"repeat_last_n":-2,` + hello + `}`, translate.Invalid("invalid_value", "repeat_last_n", `"repeat_last_n" must be from 0 to the context's length in tokens, or -1 for the whole context.`)},
		"many log probabilities":    {`{"logprobs":true,"top_logprobs":765,` + hello + `}`, translate.Invalid("invalid_value", "top_logprobs", `"top_logprobs" must be from 0 to 20, not 765.`)},
		"log probabilities of none": {`{"top_logprobs":5,` + hello + `}`, translate.Invalid("invalid_value", "top_logprobs", `"top_logprobs" needs "logprobs" to be true.`)},
		"a bias of a word":          {`{"logit_bias":{"5":"much"},` + hello + `}`, translate.Invalid("invalid_value", "logit_bias", `"logit_bias" must map token ids to numbers from -100 to 100, or to false; at most 1024 of them.`)},
		"a grammar": {`{"grammar":"root ::= \"a\"",` + hello + `}`, &translate.Error{
			Kind: translate.KindForbidden, Code: "gate_closed", Param: "grammar",
			Message: `"grammar" is switched off on this server: use "response_format" with a JSON schema, or ask the operator for "allow raw_grammar".`,
		}},
		"a template's own":       {`{"chat_template_kwargs":{"messages":[]},` + hello + `}`, translate.Invalid("invalid_value", "chat_template_kwargs", `"chat_template_kwargs" must not have "messages": the engine sets that.`)},
		"a tool of another kind": {`{"tools":[{"type":"web_search"}],` + hello + `}`, translate.Invalid("invalid_value", "tools[0].type", `"tools[0].type" must be "function" or "custom": this server runs no other tools.`)},
		"arguments that are deep": {
			`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":"` + testkit.Nested("[", "", "]", 65) + `"}}]}]}`,
			translate.Invalid("invalid_value", "messages[0].tool_calls[0].function.arguments", `"messages[0].tool_calls[0].function.arguments" must not be nested more than 64 levels deep.`),
		},
		"n is much":                  {`{"n":10001,` + hello + `}`, noChoices},
		"n is none":                  {`{"n":0,` + hello + `}`, noChoices},
		"n is a half":                {`{"n":0.5,` + hello + `}`, translate.Invalid("invalid_type", "n", `"n" must be a whole number, not the number 0.5.`)},
		"n is a word":                {`{"n":"1",` + hello + `}`, translate.Invalid("invalid_type", "n", `"n" must be a number, not a string.`)},
		"a limit that is a word":     {`{"max_tokens":"5",` + hello + `}`, translate.Invalid("invalid_type", "max_tokens", `"max_tokens" must be a whole number, not a string.`)},
		"a temperature of a word":    {`{"temperature":"hot",` + hello + `}`, translate.Invalid("invalid_type", "temperature", `"temperature" must be a number, not a string.`)},
		"tools that are none":        {`{"tools":3,` + hello + `}`, translate.Invalid("invalid_type", "tools", `"tools" must be an array, not the number 3.`)},
		"a stop that is a number":    {`{"stop":3,` + hello + `}`, translate.Invalid("invalid_type", "stop", `"stop" must be a string or an array, not the number 3.`)},
		"stops of which one is null": {`{"stop":["a",null],` + hello + `}`, translate.Invalid("invalid_type", "stop", `"stop" must be a string or an array of strings; it has null.`)},
		"a format that is unknown":   {`{"response_format":{"type":"yaml"},` + hello + `}`, translate.Invalid("invalid_value", "response_format.type", `"response_format.type" must be "text", "json_schema" or "json_object", not "yaml".`)},
		"a format of no type":        {`{"response_format":{},` + hello + `}`, translate.Invalid("missing_required_parameter", "response_format.type", `"response_format.type" is required: "text", "json_schema" or "json_object".`)},
		"a format without a schema":  {`{"response_format":{"type":"json_schema","json_schema":{"name":"x"}},` + hello + `}`, translate.Missing("response_format.json_schema.schema")},
		"a schema that is a string":  {`{"response_format":{"type":"json_schema","json_schema":{"schema":"x"}},` + hello + `}`, translate.Invalid("invalid_type", "response_format.json_schema.schema", `"response_format.json_schema.schema" must be an object, not a string.`)},
		"strict as a number":         {`{"response_format":{"type":"json_schema","json_schema":{"strict":1,"schema":{}}},` + hello + `}`, translate.Invalid("invalid_type", "response_format.json_schema.strict", `"response_format.json_schema.strict" must be a boolean or a string, not the number 1.`)},
		"an effort that is unknown":  {`{"reasoning_effort":"most",` + hello + `}`, translate.Invalid("invalid_value", "reasoning_effort", `"reasoning_effort" must be one of: none, minimal, low, medium, high, xhigh, max.`)},
		"a tool that is unknown": {
			`{"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}}],"tool_choice":{"type":"function","function":{"name":"c"}},` + hello + `}`,
			translate.Invalid("invalid_value", "tool_choice", `"tool_choice" names the function "c", but the tools are: a, b.`),
		},
		"a tool of none":            {`{"tool_choice":{"type":"function","function":{"name":"c"}},` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice" names the function "c", but there are no tools.`)},
		"a tool without a name":     {`{"tool_choice":{"type":"function"},` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice" must name a function: {"type":"function","function":{"name":"…"}}.`)},
		"a choice of another kind":  {`{"tool_choice":{"type":"web_search"},` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `The "type" of "tool_choice" must be "function", "custom" or "allowed_tools".`)},
		"a choice of another word":  {`{"tool_choice":"any",` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice" must be "none", "auto", "required", or an object that names a function, not "any".`)},
		"allowed in no way":         {`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"none","tools":[]}},` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice.allowed_tools.mode" must be "auto" or "required".`)},
		"none are allowed":          {`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}},` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice" allows no tools: use "none" to have none called.`)},
		"none are required":         {`{"tools":[],"tool_choice":"required",` + hello + `}`, translate.Invalid("invalid_value", "tool_choice", `"tool_choice" is "required", but there are no "tools" to call.`)},
		"an image of nothing":       {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, translate.Missing("messages[0].content[0].image_url.url")},
		"an image without a URL":    {`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, translate.Missing("messages[0].content[0].image_url")},
		"an image of null":          {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":null}}]}]}`, translate.Missing("messages[0].content[0].image_url.url")},
		"a text without its text":   {`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, translate.Missing("messages[0].content[0].text")},
		"an image from elsewhere":   {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`, remote("messages[0].content[0].image_url.url")},
		"an image from an odd form": {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"http://example.com/a.png"}]}]}`, remote("messages[0].content[0].image_url")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := upstream(t, tt.body, capsOf(request.Caps{Vision: tt.want != noImages && tt.want != noImagesBehind}))
			if diff := cmp.Diff(tt.want, err); diff != "" || got != nil {
				t.Errorf("body %s, error (-want +got):\n%s", got, diff)
			}
		})
	}
}

// An engine lists twenty other tokens if the request has no number, and none for 0.
func TestParseChat_LogprobsOfTheChosenTokens(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`"logprobs":true`:                     "1 true",
		`"logprobs":true,"top_logprobs":0`:    "1 true",
		`"logprobs":true,"top_logprobs":null`: "1 true",
		`"logprobs":true,"top_logprobs":3`:    "3 false",
		`"logprobs":false`:                    " false",
	} {
		body := testkit.Scan(t, `{"messages":[{"role":"user","content":"Hi"}],`+more+`}`)
		chat, bad := openai.ParseChat(body, capsOf(request.Caps{}))
		if bad != nil {
			t.Fatal(bad)
		}
		var sent strings.Builder
		for _, piece := range (llamaserver.Wire{}).Chat(body, chat, 0).Body {
			sent.Write(piece)
		}
		got := gjson.Get(sent.String(), "top_logprobs").Raw
		if chat.OnlyChosen {
			got += " true"
		} else {
			got += " false"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

func TestLimitTokens(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]int{
		``: -1, `,"max_tokens":7`: 7, `,"max_tokens":null`: -1, `,"max_completion_tokens":8,"max_tokens":7`: 8,
		`,"n_predict":-5,"max_tokens":7`: -1, `,"n_predict":3,"max_completion_tokens":4`: 3,
	} {
		body, bad := jsonbody.Scan([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]` + fields + `}`))
		if bad != nil {
			t.Fatal(bad)
		}
		if got := request.TokenLimit(body.Fields()); got != want {
			t.Errorf("%s: %d, want %d", fields, got, want)
		}
		chat, bad := openai.ParseChat(body, capsOf(request.Caps{}))
		if bad != nil {
			t.Fatal(bad)
		}
		chat.LimitTokens(5)
		sent := gjson.ParseBytes(bytes.Join(llamaserver.Wire{}.Chat(body, chat, 0).Body, nil))
		if sent.Get("max_tokens").Raw != "5" || sent.Get("n_predict").Exists() || sent.Get("max_completion_tokens").Exists() {
			t.Errorf("%s: %s", fields, sent)
		}
	}
}

// FuzzChat checks that any request is rejected with an error for the client, or becomes a valid request to the engine.
func FuzzChat(f *testing.F) {
	for _, body := range append(bodies,
		`{`+hello+`,"tools":[{"function":{"name":"a"}}],"tool_choice":{"type":"function","function":{"name":"a"}},"parallel_tool_calls":false}`,
		`{`+hello+`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{}]}},"tools":[1]}`,
		`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"schema":{}},"schema":{}},"n":3,"seed":-1,"stop":["a"]}`,
		`{`+hello+`,"max_tokens":-9,"reasoning_effort":"xhigh","ttl":1,"draft_model":"d","verbose":false}`,
		`{"messages":[{"tool_calls":[{"function":{"arguments":""}}]}],"preset":"p","temperature":null}`,
	) {
		f.Add([]byte(body), true, true)
	}
	defaults := map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "system_prompt": json.RawMessage(`"Hi"`)}
	f.Fuzz(func(t *testing.T, raw []byte, vision, preset bool) {
		body, err := jsonbody.Scan(raw)
		if err != nil {
			return
		}
		if preset {
			if body, err = openai.WithDefaults(body, "preset", defaults); err != nil {
				return // our limits
			}
		}
		chat, err := openai.ParseChat(body, capsOf(request.Caps{Vision: vision}))
		if err != nil {
			if err.Status() != 400 || err.Code == "" || err.Message == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		sent := bytes.Join(llamaserver.Wire{}.Chat(body, chat, 1).Body, nil)
		if !json.Valid(sent) {
			t.Fatalf("not JSON: %s", sent)
		}
		top := gjson.ParseBytes(sent).Map()
		if top["stream"].Raw != "true" || top["stream_options"].Raw != `{"include_usage":true}` || top["n"].Exists() && top["n"].Type != gjson.Null {
			t.Fatalf("sent: %s", sent)
		}
		for _, ours := range []string{"ttl", "draft_model"} {
			if top[ours].Exists() {
				t.Fatalf("%s is sent: %s", ours, sent)
			}
		}
		if choice := top["tool_choice"]; choice.IsObject() {
			t.Fatalf("the engine doesn't know a tool_choice of %s", choice)
		}
	})
}
