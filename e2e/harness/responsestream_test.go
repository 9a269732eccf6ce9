package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// numbered writes a stream: each event as its name, a space and its JSON members besides the type and the number.
func numbered(events ...string) string {
	var b strings.Builder
	for i, ev := range events {
		name, members, _ := strings.Cut(ev, " ")
		if name != "error" {
			name = "response." + name
		}
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, i, members)
	}
	return b.String() + "data: [DONE]\n\n"
}

var hex = strings.Repeat("0a", 24)

// response writes a response object with a status, an output and further members, which replace others.
func response(status, output string, more ...string) string {
	members := []string{
		`"id":"resp_` + hex + `"`, `"object":"response"`, `"created_at":1`, `"completed_at":null`, `"status":"` + status + `"`, `"background":false`,
		`"store":true`, `"model":"m"`, `"previous_response_id":null`, `"instructions":null`, `"output":[` + output + `]`, `"error":null`,
		`"incomplete_details":null`, `"tools":[]`, `"tool_choice":"auto"`, `"parallel_tool_calls":true`, `"max_tool_calls":null`,
		`"text":{"format":{"type":"text"}}`, `"temperature":1`, `"top_p":1`, `"presence_penalty":0`, `"frequency_penalty":0`, `"top_logprobs":0`,
		`"truncation":"disabled"`, `"max_output_tokens":null`, `"service_tier":"default"`, `"metadata":{}`, `"reasoning":null`,
		`"safety_identifier":null`, `"prompt_cache_key":null`, `"usage":null`,
	}
	for _, m := range more {
		name, _, _ := strings.Cut(m, ":")
		i := slices.IndexFunc(members, func(old string) bool { return strings.HasPrefix(old, name+":") })
		members[i] = m
	}
	return `"response":{` + strings.Join(members, ",") + "}"
}

const used = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":13}`

// item writes the events of an item: added and done as JSON members besides its id and its type, and those in between as names
// and members.
func item(index int, prefix, kind, added, done string, between ...string) []string {
	id := fmt.Sprintf("%s_%s%d", prefix, hex, index)
	whole := func(members string) string {
		return fmt.Sprintf(`"output_index":%d,"item":{"id":%q,"type":%q,%s}`, index, id, kind, members)
	}
	all := []string{"output_item.added " + whole(added)}
	for _, ev := range between {
		name, members, more := strings.Cut(ev, " ")
		ev = fmt.Sprintf(`%s "item_id":%q,"output_index":%d`, name, id, index)
		if more {
			ev += "," + members
		}
		all = append(all, ev)
	}
	return append(all, "output_item.done "+whole(done))
}

func messageItem(index int, status string) []string {
	part := func(text string) string {
		return `{"type":"output_text","text":"` + text + `","annotations":[],"logprobs":[]}`
	}
	return item(index, "msg", "message", `"role":"assistant","status":"in_progress","content":[]`, `"role":"assistant","status":"`+status+`","content":[`+part("Hello.")+`]`,
		`content_part.added "content_index":0,"part":`+part(""),
		`output_text.delta "content_index":0,"delta":"Hel","logprobs":[]`,
		`output_text.delta "content_index":0,"delta":"lo.","logprobs":[]`,
		`output_text.done "content_index":0,"text":"Hello.","logprobs":[]`,
		`content_part.done "content_index":0,"part":`+part("Hello."))
}

func reasoningItem(index int) []string {
	return item(index, "rs", "reasoning", `"summary":[],"content":[],"status":"in_progress"`, `"summary":[],"content":[{"type":"reasoning_text","text":"Hm."}],"status":"completed"`,
		`content_part.added "content_index":0,"part":{"type":"reasoning_text","text":""}`,
		`reasoning_text.delta "content_index":0,"delta":"Hm."`,
		`reasoning_text.done "content_index":0,"text":"Hm."`,
		`content_part.done "content_index":0,"part":{"type":"reasoning_text","text":"Hm."}`)
}

func functionItem(index int) []string {
	const call = `"call_id":"call_1","name":"f",`
	return item(index, "fc", "function_call", call+`"arguments":"","status":"in_progress"`, call+`"arguments":"{\"a\":1}","status":"completed"`,
		`function_call_arguments.delta "delta":"{\"a\":"`, `function_call_arguments.delta "delta":"1}"`,
		`function_call_arguments.done "name":"f","arguments":"{\"a\":1}"`)
}

func listItem(index int) []string {
	return item(index, "mcpl", "mcp_list_tools", `"server_label":"s","tools":[]`, `"server_label":"s","tools":[{"name":"t","input_schema":{}}]`,
		"mcp_list_tools.in_progress", "mcp_list_tools.completed")
}

func callItem(index int, outcome, output, fault string) []string {
	const call = `"server_label":"s","name":"t","approval_request_id":null,`
	return item(index, "mcp", "mcp_call", call+`"arguments":"","status":"in_progress","output":null,"error":null`,
		call+`"arguments":"{}","status":"`+outcome+`","output":`+output+`,"error":`+fault,
		"mcp_call.in_progress", `mcp_call_arguments.delta "delta":"{}"`, `mcp_call_arguments.done "arguments":"{}"`, "mcp_call."+outcome)
}

const toolFault = `{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no"}]}`

// around writes the stream of items, which ends with a status.
func around(status string, items []string, more ...string) string {
	var output []string // ordered by index
	for _, ev := range items {
		if data, isDone := strings.CutPrefix(ev, "output_item.done "); isDone {
			n := int(gjson.Get("{"+data+"}", "output_index").Int())
			output = append(output, make([]string, max(0, n+1-len(output)))...)
			output[n] = gjson.Get("{"+data+"}", "item").Raw
		}
	}
	events := append([]string{"created " + response("in_progress", ""), "in_progress " + response("in_progress", "")}, items...)
	if status == "failed" {
		events = append(events, `error "error":{"type":"server_error","code":"engine_failed","message":"It broke.","param":null}`)
		more = append(more, `"error":{"code":"server_error","message":"It broke."}`)
	}
	return numbered(append(events, status+" "+response(status, strings.Join(output, ","), more...))...)
}

// answered is a stream with reasoning and a message.
func answered() string {
	return around("completed", slices.Concat(reasoningItem(0), messageItem(1, "completed")), used, `"completed_at":2`)
}

func TestCheckResponse_TakesWhatIsPublished(t *testing.T) {
	t.Parallel()
	at := `"completed_at":2`
	whole := func(items []string) string { return around("completed", items, used, at) }
	queued := response("queued", "")
	for name, tt := range map[string]struct{ raw, order string }{
		"reasoning and a message": {
			answered(),
			"created in_progress output_item.added:reasoning content_part.added reasoning_text.delta+ reasoning_text.done content_part.done output_item.done " +
				"output_item.added:message content_part.added output_text.delta+ output_text.done content_part.done output_item.done completed",
		},
		"nothing said": {around("completed", nil, used, at), "created in_progress completed"},
		"comments":     {":\n\n" + strings.ReplaceAll(answered(), "\n\nevent", "\n\n: still there\n\nevent"), ""},
		"cancelled": {
			numbered("created "+queued, "queued "+queued, "in_progress "+response("in_progress", ""), "failed "+response("cancelled", "", used)), "",
		},
		"calls that overlap": {whole(slices.Concat(
			functionItem(0)[:2], functionItem(1)[:1], functionItem(0)[2:3], functionItem(1)[1:], functionItem(0)[3:],
		)), ""},
		"a function call":  {around("completed", functionItem(0), used, at), ""},
		"a list of tools":  {around("completed", slices.Concat(listItem(0), messageItem(1, "completed")), used, at), ""},
		"calls of servers": {around("completed", slices.Concat(listItem(0), callItem(1, "completed", `"red"`, "null"), callItem(2, "failed", "null", toolFault)), used, at), ""},
		"cut off":          {around("incomplete", messageItem(0, "incomplete"), used, `"incomplete_details":{"reason":"max_output_tokens"}`), ""},
		"a failure":        {around("failed", messageItem(0, "incomplete"), used), ""},
		"a failure without usage": {
			around("failed", slices.Concat(item(0, "mcpl", "mcp_list_tools", `"server_label":"s","tools":[]`, `"server_label":"s","tools":[],"error":"no"`,
				"mcp_list_tools.in_progress", "mcp_list_tools.failed"))), "",
		},
		"in the background": {
			numbered("created "+queued, "queued "+queued, "in_progress "+response("in_progress", ""), "completed "+response("completed", "", used, at)), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := CheckResponse(tt.raw)
			if err != nil {
				t.Fatalf("%v in\n%s", err, tt.raw)
			}
			if tt.order != "" && s.Order() != tt.order {
				t.Errorf("the order is\n%s", s.Order())
			}
		})
	}
}

func TestCheckResponse_SeesWhatBreaksARule(t *testing.T) {
	t.Parallel()
	const message = `"id":"msg_`
	tools := func() []string { return slices.Concat(listItem(0), callItem(1, "completed", `"red"`, "null")) }
	at := `"completed_at":2`
	whole := func(items []string) string { return around("completed", items, used, at) }
	without := func(items []string, i int) string { return whole(slices.Delete(items, i, i+1)) }
	for name, tt := range map[string]struct{ raw, from, to, want string }{
		"no end of an event":       {answered(), "}\n\ndata: [DONE]\n\n", "}\n\ndata: [DONE]\n", "cut short"},
		"no event line":            {answered(), "event: response.in_progress\n", "", "not a line"},
		"no JSON":                  {answered(), `"sequence_number":2,`, `"sequence_number":2`, "not JSON"},
		"another type":             {answered(), "event: response.in_progress\n", "event: response.queued\n", "the type is"},
		"an unknown event":         {answered(), `event: response.in_progress` + "\n" + `data: {"type":"response.in_progress"`, `event: response.hello` + "\n" + `data: {"type":"response.hello"`, "no such event"},
		"a number left out":        {answered(), `"sequence_number":2,`, `"sequence_number":3,`, "should be 2"},
		"no number":                {answered(), `"sequence_number":2,`, "", "sequence_number is missing"},
		"a number from 1":          {around("completed", nil, used, at), `"sequence_number":0`, `"sequence_number":1`, "should be 0"},
		"no DONE":                  {answered(), "data: [DONE]\n\n", "", "no [DONE]"},
		"two DONEs":                {answered(), "data: [DONE]\n\n", "data: [DONE]\n\ndata: [DONE]\n\n", "after [DONE]"},
		"no created":               {numbered("in_progress "+response("in_progress", ""), "completed "+response("completed", "", used, at)), "", "", "response.created comes first"},
		"no in_progress":           {numbered(append([]string{"created " + response("in_progress", "")}, messageItem(0, "completed")...)...), "", "", "before response.in_progress"},
		"no end":                   {numbered("created "+response("in_progress", ""), "in_progress "+response("in_progress", "")), "", "", "there is no end"},
		"two ends":                 {numbered("created "+response("in_progress", ""), "completed "+response("completed", "", used, at), "completed "+response("completed", "", used, at)), "", "", "after the end"},
		"a field of the response":  {answered(), `"service_tier":"default",`, "", "service_tier is missing"},
		"an output_text":           {answered(), `"service_tier":"default",`, `"service_tier":"default","output_text":"Hello.",`, "no field output_text"},
		"another response":         {around("completed", nil, used, at, `"id":"resp_`+strings.Repeat("0b", 24)+`"`), "", "", "isn't as it was created"},
		"another model":            {around("completed", nil, used, at, `"model":"n"`), "", "", "isn't as it was created"},
		"an output at once":        {numbered("created " + response("in_progress", `{`+message+hex+`0","type":"message","role":"assistant","status":"completed","content":[]}`)), "", "", "the output isn't empty"},
		"usage while it runs":      {numbered("created " + response("in_progress", "", used)), "", "", "in_progress has the usage"},
		"no usage":                 {around("completed", nil, at), "", "", "completed has the usage null"},
		"no time":                  {around("completed", nil, used), "", "", "completed_at null"},
		"a wrong sum":              {around("completed", nil, strings.Replace(used, "13", "14", 1), at), "", "", "isn't the sum"},
		"a cut without a reason":   {around("incomplete", messageItem(0, "incomplete"), used), "", "", "incomplete_details null"},
		"incomplete, completed":    {whole(messageItem(0, "incomplete")), "", "", "an item is incomplete"},
		"no error event":           {numbered("created "+response("in_progress", ""), "in_progress "+response("in_progress", ""), "failed "+response("failed", "", `"error":{"code":"c","message":"m"}`)), "", "", "has the error event"},
		"another error":            {around("failed", nil), `"code":"engine_failed","message":"It broke."`, `"code":"engine_failed","message":"It bent."`, "the error was"},
		"a flat error":             {around("failed", nil), `"error":{"type":"server_error","code":"engine_failed","message":"It broke.","param":null}`, `"message":"It broke."`, "no field message"},
		"an error without its end": {numbered("created "+response("in_progress", ""), `error "error":{"type":"t","code":"c","message":"m","param":null}`), "", "", "there is no end"},
		"an error, cancelled":      {numbered("created "+response("in_progress", ""), `error "error":{"type":"t","code":"c","message":"m","param":null}`, "failed "+response("cancelled", "")), "", "", "has the error event"},
		"a message in a message":   {whole(slices.Concat(messageItem(0, "completed")[:3], functionItem(1), messageItem(0, "completed")[3:])), "", "", "message is still open"},
		"an event of a done item":  {whole(append(messageItem(0, "completed"), messageItem(0, "completed")[3])), "", "", "item 0 isn't open"},
		"an error in an item":      {around("failed", slices.Delete(messageItem(0, "incomplete"), 6, 7)), "", "", "is still open"},
		"another id's prefix":      {whole(messageItem(0, "completed")), message, `"id":"msgs_`, "no id with msg_"},
		"another response's item":  {whole(messageItem(0, "completed")), message + hex, message + strings.Repeat("0b", 24), "of the item msg_0a"},
		"foreign items":            {strings.ReplaceAll(whole(messageItem(0, "completed")), "msg_"+hex, "msg_"+strings.Repeat("0b", 24)), "", "", "isn't of resp_"},
		"an index too high":        {numbered("created "+response("in_progress", ""), "in_progress "+response("in_progress", ""), messageItem(1, "completed")[0]), "", "", "output_index should be 0"},
		"an item in an item":       {numbered("created "+response("in_progress", ""), "in_progress "+response("in_progress", ""), messageItem(0, "completed")[0], reasoningItem(1)[0]), "", "", "message is still open"},
		"an open item":             {without(messageItem(0, "completed"), 6), "", "", "is still open"},
		"no item":                  {without(messageItem(0, "completed"), 0), "", "", "item 0 isn't open"},
		"no part":                  {without(messageItem(0, "completed"), 1), "", "", "should come"},
		"a piece missing":          {without(messageItem(0, "completed"), 2), "", "", "the pieces were"},
		"no text at the end":       {without(messageItem(0, "completed"), 4), "", "", "should come"},
		"an open part":             {without(messageItem(0, "completed"), 5), "", "", "should come before"},
		"an empty piece":           {whole(messageItem(0, "completed")), `"delta":"Hel"`, `"delta":""`, "or empty"},
		"a piece without logprobs": {whole(messageItem(0, "completed")), `"delta":"Hel","logprobs":[]`, `"delta":"Hel"`, "logprobs is missing"},
		"another text":             {whole(messageItem(0, "completed")), `"text":"Hello.","logprobs":[]`, `"text":"Hello","logprobs":[]`, "the pieces were"},
		"another part":             {whole(reasoningItem(0)), `"part":{"type":"reasoning_text","text":"Hm."}`, `"part":{"type":"output_text","text":"Hm.","annotations":[],"logprobs":[]}`, "part 0 is output_text"},
		"another item's piece":     {whole(messageItem(0, "completed")), `"item_id":"msg_` + hex + `0","output_index":0,"content_index":0,"delta":"Hel"`, `"item_id":"msg_x","output_index":0,"content_index":0,"delta":"Hel"`, "of the item msg_x"},
		"text in reasoning":        {whole(reasoningItem(0)), `event: response.reasoning_text.delta` + "\n" + `data: {"type":"response.reasoning_text.delta"`, `event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","logprobs":[]`, "should come"},
		"no thought":               {without(reasoningItem(0), 2), "", "", "the pieces were"},
		"a message with a null":    {whole(messageItem(0, "completed")), `"type":"message",`, `"type":"message","phase":null,`, "phase"},
		"arguments of another":     {whole(functionItem(0)), `"name":"f","arguments"`, `"name":"g","arguments"`, "the call is of g"},
		"other arguments":          {without(functionItem(0), 2), "", "", "the pieces were"},
		"no arguments at the end":  {without(functionItem(0), 3), "", "", "should come before"},
		"another call_id":          {whole(functionItem(0)), `"call_id":"call_1","name":"f","arguments":""`, `"call_id":"call_2","name":"f","arguments":""`, "isn't as it was added"},
		"a call that still runs":   {whole(functionItem(0)), `"arguments":"{\"a\":1}","status":"completed"}}`, `"arguments":"{\"a\":1}","status":"in_progress"}}`, "in_progress at its end"},
		"tools at once":            {whole(listItem(0)), `"tools":[]}}`, `"tools":[{"name":"t","input_schema":{}}]}}`, "tools at the beginning"},
		"a tool with a null":       {strings.ReplaceAll(whole(listItem(0)), `"input_schema":{}`, `"input_schema":{},"description":null`), "", "", "description"},
		"no outcome of a list":     {without(listItem(0), 2), "", "", "should come before"},
		"no beginning of a call":   {without(tools(), 5), "", "", "should come"},
		"no outcome of a call":     {without(tools(), 8), "", "", "should come before"},
		"another outcome":          {whole(slices.Replace(tools(), 8, 9, callItem(1, "failed", "null", toolFault)[4])), "", "", "the call has failed"},
		"a failure without error":  {whole(slices.Concat(listItem(0), callItem(1, "failed", "null", "null"))), "", "", "the call has failed"},
		"a call without output":    {whole(slices.Concat(listItem(0), callItem(1, "completed", "null", "null"))), "", "", "has an output"},
		"an error as a string":     {whole(slices.Concat(listItem(0), callItem(1, "failed", "null", `"no"`))), "", "", "no such error"},
		"another output":           {strings.Replace(answered(), `"completed_at":2`, `"completed_at":3`, 1), `"output":[{"id":"rs_`, `"output":[{"id":"rs_` + hex + `9","type":"reasoning","summary":[],"content":[],"status":"completed"},{"id":"rs_`, "not what was told"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := tt.raw
			if tt.from != "" {
				if !strings.Contains(raw, tt.from) {
					t.Fatalf("%q is not in\n%s", tt.from, raw)
				}
				raw = strings.Replace(raw, tt.from, tt.to, 1)
			}
			_, err := CheckResponse(raw)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
