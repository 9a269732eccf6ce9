package harness

import (
	"slices"
	"strings"
	"testing"
)

// transcript writes a stream: each event as its name, a space and its JSON members besides the type.
func transcript(events ...string) string {
	var b strings.Builder
	for _, ev := range events {
		name, members, more := strings.Cut(ev, " ")
		b.WriteString("event: " + name + "\ndata: {\"type\":\"" + name + "\"")
		if more {
			b.WriteString("," + members)
		}
		b.WriteString("}\n\n")
	}
	return b.String()
}

// chatEnd is the event with an output, and additional members of its stats.
func chatEnd(output, stats string) string {
	return `chat.end "result":{"model_instance_id":"m","output":[` + output + `],"stats":{"input_tokens":9,"total_output_tokens":4,` +
		`"reasoning_output_tokens":1,"tokens_per_second":20.5,"time_to_first_token_seconds":0.1` + stats + `},"response_id":"resp_` + strings.Repeat("0a", 24) + `"}`
}

const (
	id          = `"model_instance_id":"m"`
	start       = "chat.start " + id
	loaded      = "model_load.end " + id + `,"load_time_seconds":1.5`
	seconds     = `,"model_load_time_seconds":1.5`
	server      = `"provider_info":{"type":"ephemeral_mcp","server_label":"s"}`
	plugin      = `"provider_info":{"type":"plugin","plugin_id":"mcp/p"}`
	badCall     = `"reason":"no","metadata":{"type":"invalid_arguments","tool_name":"t","arguments":{},` + server + `}`
	badName     = `"reason":"no","metadata":{"type":"invalid_name","tool_name":"t"}`
	broken      = `error "error":{"type":"internal_error","message":"It broke.","code":"engine_failed"}`
	unreachable = `error "error":{"type":"mcp_connection_error","message":"It is gone."}`
	hello       = `{"type":"message","content":"Hello."}`
	thoughts    = `{"type":"reasoning","content":"Hm."}`
)

// prompted are the events of a prompt.
func prompted() []string {
	return []string{"prompt_processing.start", `prompt_processing.progress "progress":0`, `prompt_processing.progress "progress":1`, "prompt_processing.end"}
}

// loading are the events of a load.
func loading() []string {
	return []string{"model_load.start " + id, "model_load.progress " + id + `,"progress":0.5`, "model_load.progress " + id + `,"progress":0.5`, loaded}
}

func thinking() []string {
	return []string{"reasoning.start", `reasoning.delta "content":"Hm"`, `reasoning.delta "content":"."`, "reasoning.end"}
}

func speaking() []string {
	return []string{"message.start", `message.delta "content":"Hel"`, `message.delta "content":"lo."`, "message.end"}
}

func calling() []string {
	return []string{
		`tool_call.start "tool":"t",` + server, `tool_call.arguments "tool":"t","arguments":{"a":1},` + server,
		`tool_call.success "tool":"t","arguments":{"a":1},"output":"[]",` + server,
	}
}

// full is a stream with everything in it but tools.
func full() []string {
	return slices.Concat([]string{start}, loading(), prompted(), thinking(), speaking(), []string{chatEnd(thoughts+","+hello, seconds)})
}

func TestCheckNative_TakesWhatTheSpecificationAllows(t *testing.T) {
	t.Parallel()
	called := `{"type":"tool_call","tool":"t","arguments":{"a":1},"output":"[]",` + server + `}`
	for name, tt := range map[string]struct {
		raw   string
		order string
	}{
		"everything": {
			transcript(full()...),
			"chat.start model_load.start model_load.end prompt_processing.start prompt_processing.end reasoning.start reasoning.delta+ reasoning.end " +
				"message.start message.delta+ message.end chat.end",
		},
		"nothing said":       {transcript(slices.Concat([]string{start}, prompted(), []string{chatEnd("", "")})...), ""},
		"comments":           {":\n\n" + strings.ReplaceAll(transcript(full()...), "\n\n", "\n\n: still there\n\n"), ""},
		"no progress":        {transcript(start, "prompt_processing.start", "prompt_processing.end", chatEnd("", "")), ""},
		"not stored":         {strings.Replace(transcript(full()...), `,"response_id":"resp_`+strings.Repeat("0a", 24)+`"`, "", 1), ""},
		"a fault at once":    {transcript(start, broken, chatEnd("", "")), "chat.start error chat.end"},
		"a fault in a load":  {transcript(start, "model_load.start "+id, broken, chatEnd("", "")), ""},
		"a fault in between": {transcript(slices.Concat([]string{start}, prompted(), speaking(), []string{broken, chatEnd(hello, "")})...), ""},
		"two messages":       {transcript(slices.Concat([]string{start}, prompted(), speaking(), speaking(), []string{chatEnd(hello+","+hello, "")})...), ""},
		"a call": {
			transcript(slices.Concat([]string{start}, prompted(), calling(), prompted(), speaking(), []string{chatEnd(called+","+hello, "")})...), "",
		},
		"a call of a plugin": {
			strings.ReplaceAll(transcript(slices.Concat([]string{start}, prompted(), calling(), []string{chatEnd(called, "")})...), server, plugin), "",
		},
		"thoughts around a call": {
			transcript(slices.Concat([]string{start}, prompted(), thinking(), calling(), prompted(), thinking(), speaking(),
				[]string{chatEnd(thoughts+","+called+","+thoughts+","+hello, "")})...),
			"chat.start prompt_processing.start prompt_processing.end reasoning.start reasoning.delta+ reasoning.end " +
				"tool_call.start tool_call.arguments tool_call.success prompt_processing.start prompt_processing.end " +
				"reasoning.start reasoning.delta+ reasoning.end message.start message.delta+ message.end chat.end",
		},
		"a call that fails": {
			transcript(slices.Concat([]string{start}, prompted(), calling()[:2], []string{unreachable}, calling()[2:], prompted(), speaking(),
				[]string{chatEnd(called+","+hello, "")})...), "",
		},
		"bad calls": {
			transcript(slices.Concat([]string{start}, prompted(), []string{"tool_call.failure " + badName}, calling()[:1], []string{
				"tool_call.failure " + badCall, chatEnd(`{"type":"invalid_tool_call",`+badName+`},{"type":"invalid_tool_call",`+badCall+`}`, ""),
			})...), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := CheckNative(tt.raw)
			if err != nil {
				t.Fatalf("%v in\n%s", err, tt.raw)
			}
			if tt.order != "" && s.Order() != tt.order {
				t.Errorf("the order is\n%s", s.Order())
			}
		})
	}
}

// change replaces a text that occurs once in a valid stream.
func change(t *testing.T, from, to string) string {
	t.Helper()
	raw := transcript(full()...)
	if n := strings.Count(raw, from); n != 1 {
		t.Fatalf("%q is there %d times", from, n)
	}
	return strings.Replace(raw, from, to, 1)
}

func TestCheckNative_SeesWhatBreaksARule(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, to, want string }{
		"no end of an event":           {`"}` + "}\n\n", `"}` + "}\n", "cut short"},
		"no event line":                {"event: reasoning.start\n", "", "not a line"},
		"no data line":                 {"data: {\"type\":\"reasoning.start\"}\n", "", "not a line"},
		"two data lines":               {"data: {\"type\":\"reasoning.start\"}\n", "data: {\"type\":\"reasoning.start\"}\ndata: {}\n", "not a line"},
		"a comment within an event":    {"event: reasoning.start\n", ":\nevent: reasoning.start\n", "not a line"},
		"not JSON":                     {`{"type":"reasoning.start"}`, `{"type":"reasoning.start"`, "not JSON"},
		"another type":                 {`{"type":"reasoning.start"}`, `{"type":"reasoning.end"}`, "the type is"},
		"no type":                      {`{"type":"reasoning.start"}`, `{}`, "the type is"},
		"no such event":                {"event: reasoning.start\ndata: {\"type\":\"reasoning.start\"}", "event: hello\ndata: {\"type\":\"hello\"}", "no such event"},
		"a field too many":             {`{"type":"reasoning.start"}`, `{"type":"reasoning.start","index":0}`, "no field index"},
		"a field twice":                {`{"type":"reasoning.start"}`, `{"type":"reasoning.start","type":"reasoning.start"}`, "type is there twice"},
		"a field too few":              {`{"type":"chat.start","model_instance_id":"m"}`, `{"type":"chat.start"}`, "model_instance_id is missing"},
		"a number for a text":          {`"content":"Hel"`, `"content":1`, "content: 1 is no string"},
		"an empty delta":               {`"content":"Hel"`, `"content":""`, "content: \"\" is no string, or empty"},
		"progress over 1":              {`"model_load.progress","model_instance_id":"m","progress":0.5}` + "\n\nevent: model_load.end", `"model_load.progress","model_instance_id":"m","progress":1.5}` + "\n\nevent: model_load.end", "no number from 0 to 1"},
		"progress that falls":          {`"model_load.progress","model_instance_id":"m","progress":0.5}` + "\n\nevent: model_load.end", `"model_load.progress","model_instance_id":"m","progress":0.4}` + "\n\nevent: model_load.end", "0.5 already"},
		"a prompt's that falls":        {`"progress":1}`, `"progress":1}` + "\n\n" + strings.TrimSuffix(transcript(`prompt_processing.progress "progress":0.5`), "\n\n"), "1 already"},
		"another instance loads":       {`"model_load.start","model_instance_id":"m"`, `"model_load.start","model_instance_id":"n"`, `of "n"`},
		"no chat.start":                {transcript(start), "", "chat.start comes first"},
		"two chat.starts":              {transcript(start), transcript(start, start), "chat.start comes first"},
		"no start of the load":         {transcript("model_load.start " + id), "", "was not started"},
		"no end of the load":           {transcript(loaded), "", "model_load is still open"},
		"no start of the prompt":       {transcript("prompt_processing.start"), "", "was not started"},
		"no end of the prompt":         {transcript("prompt_processing.end"), "", "before the prompt"},
		"two prompts":                  {transcript("reasoning.start"), transcript("prompt_processing.start", "prompt_processing.end", "reasoning.start"), "once, and again after a tool"},
		"a prompt amid a message":      {transcript("message.end"), transcript("prompt_processing.start"), "the prompt is processed once"},
		"a load after the prompt":      {transcript("reasoning.start"), transcript("model_load.start "+id) + transcript("reasoning.start"), "right after chat.start"},
		"no prompt at all":             {transcript(slices.Concat(prompted(), thinking(), speaking())...), "", "prompt was not processed"},
		"reasoning before the prompt":  {transcript("prompt_processing.start"), transcript(append(thinking(), "prompt_processing.start")...), "before the prompt"},
		"no start of a message":        {transcript("message.start"), "", "was not started"},
		"no end of a message":          {transcript("message.end"), "", "message is still open"},
		"a message in reasoning":       {transcript("reasoning.end"), "", "reasoning is still open"},
		"nothing said":                 {transcript(speaking()[1:3]...), "", "nothing was said"},
		"another's delta":              {`event: reasoning.delta` + "\n" + `data: {"type":"reasoning.delta","content":"Hm"}`, `event: message.delta` + "\n" + `data: {"type":"message.delta","content":"Hm"}`, "was not started"},
		"another output":               {`"content":"Hello."`, `"content":"Hello"`, "not what was told"},
		"an item too many":             {hello, hello + "," + hello, "not what was told"},
		"an unknown item":              {hello, `{"type":"song","content":"la"}`, "has no such type"},
		"an item's field":              {hello, `{"type":"message","content":"Hello.","id":"x"}`, "no field id"},
		"stats incomplete":             {`"input_tokens":9,`, "", "input_tokens is missing"},
		"half a token":                 {`"input_tokens":9,`, `"input_tokens":9.5,`, "no whole number"},
		"more thought than said":       {`"reasoning_output_tokens":1`, `"reasoning_output_tokens":5`, "more reasoning"},
		"a negative time":              {`"time_to_first_token_seconds":0.1`, `"time_to_first_token_seconds":-1`, "no number from 0"},
		"a load's time missing":        {seconds, "", "model_load_time_seconds"},
		"another load's time":          {seconds, `,"model_load_time_seconds":2`, "model_load_time_seconds is 2"},
		"a load's time without a load": {transcript(loading()...), "", "model_load_time_seconds is 1.5"},
		"a short id":                   {"resp_0a", "resp_0", "no id of a response"},
		"an id in capitals":            {"resp_0a", "resp_0A", "no id of a response"},
		"another prefix":               {"resp_0a", "rest_0a", "no id of a response"},
		"two errors":                   {transcript("message.end"), transcript("message.end", broken, broken), "only chat.end"},
		"an error, and more":           {transcript("message.start"), transcript(broken, "message.start"), "only chat.end"},
		"an error in a message":        {transcript("message.end"), transcript(broken), "message is still open"},
		"an error of no type":          {transcript("message.end"), strings.Replace(transcript("message.end", broken), "internal_error", "server_error", 1), "none of"},
		"an error without words":       {transcript("message.end"), strings.Replace(transcript("message.end", broken), "It broke.", "", 1), "message"},
		"no chat.end":                  {transcript(chatEnd(thoughts+","+hello, seconds)), "", "there is no chat.end"},
		"two chat.ends":                {transcript(chatEnd(thoughts+","+hello, seconds)), strings.Repeat(transcript(chatEnd(thoughts+","+hello, seconds)), 2), "after chat.end"},
		"more after the end":           {transcript(chatEnd(thoughts+","+hello, seconds)), transcript(chatEnd(thoughts+","+hello, seconds), "message.start"), "after chat.end"},
		"no prompt after a call":       {transcript("message.start"), transcript(append(calling(), "message.start")...), "processed again before"},
		"two prompts after a call":     {transcript("message.start"), transcript(slices.Concat(calling(), prompted(), prompted(), []string{"message.start"})...), "once, and again after a tool"},
		"a server's error, no call":    {transcript("message.start"), transcript(unreachable, "message.start"), "only chat.end"},
		"arguments of no call":         {transcript("message.start"), transcript(calling()[1], "message.start"), "was not started"},
		"arguments twice":              {transcript("message.start"), transcript(calling()[0], calling()[1], calling()[1], "message.start"), "told once"},
		"a call without arguments":     {transcript("message.start"), transcript(calling()[0], calling()[2], "message.start"), "without arguments"},
		"a call in a message":          {transcript("message.end"), transcript(calling()[0], "message.end"), "message is still open"},
		"another tool":                 {transcript("message.start"), transcript(calling()[0], `tool_call.arguments "tool":"u","arguments":{},`+server), "the call began with"},
		"an odd provider":              {transcript("message.start"), transcript(`tool_call.start "tool":"t","provider_info":{"type":"plugin","server_label":"s"}`), "no field server_label"},
		"arguments of a bad name":      {transcript("message.start"), transcript(`tool_call.failure "reason":"no","metadata":{"type":"invalid_name","tool_name":"t","arguments":{}}`), "no field arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := CheckNative(change(t, tt.from, tt.to))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
