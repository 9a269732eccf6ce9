package testkit

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"
)

var sequenceNumber = regexp.MustCompile(`"sequence_number":\d+`)

// joined numbers events anew and makes a stream of them.
func joined(frames []string) []byte {
	var b strings.Builder
	for i, frame := range frames {
		b.WriteString(sequenceNumber.ReplaceAllString(frame, fmt.Sprintf(`"sequence_number":%d`, i)) + "\n\n")
	}
	return []byte(b.String() + "data: [DONE]\n\n")
}

// framesOf returns the events of the transcripts.
func framesOf(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("../../../translate/responses/testdata/*.txtar")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	all := map[string][]string{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		stream, _, _ := strings.Cut(string(archive.Files[0].Data), "data: [DONE]")
		all[filepath.Base(path)] = strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	}
	return all
}

// TestResponsesProblems_SeesWhatIsWrong: a stream is wrong without any one of its events, with any one of them twice, and with two of
// the same item in the other order.
func TestResponsesProblems_SeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, frames := range framesOf(t) {
		if problems := ResponsesProblems(joined(frames)); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		for i, frame := range frames {
			without := append(append([]string{}, frames[:i]...), frames[i+1:]...)
			if !strings.HasPrefix(frame, "event: response.queued") && len(ResponsesProblems(joined(without))) == 0 {
				t.Errorf("%s: nothing is wrong without event %d: %s", name, i, frame)
			}
			twice := append(append([]string{}, frames[:i+1]...), frames[i:]...)
			if len(ResponsesProblems(joined(twice))) == 0 {
				t.Errorf("%s: nothing is wrong with event %d twice: %s", name, i, frame)
			}
			if i == 0 || indexOf(frame) != indexOf(frames[i-1]) {
				continue
			}
			swapped := append([]string{}, frames...)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			if len(ResponsesProblems(joined(swapped))) == 0 {
				t.Errorf("%s: nothing is wrong with events %d and %d in the other order: %s", name, i-1, i, frame)
			}
		}
	}
}

func indexOf(frame string) string {
	_, data, _ := strings.Cut(frame, "\ndata: ")
	return gjson.Get(data, "output_index").Raw
}

// TestResponsesProblems_SeesChanges: neither may what an event says be changed.
func TestResponsesProblems_SeesChanges(t *testing.T) {
	t.Parallel()
	frames := framesOf(t)
	for name, tt := range map[string]struct{ of, old, changed string }{
		"a number":           {"text.txtar", `"sequence_number":4`, `"sequence_number":5`},
		"a name":             {"text.txtar", "event: response.output_text.delta\n", "event: response.output_text.done\n"},
		"an unknown event":   {"text.txtar", "response.in_progress", "response.begun"},
		"two lines":          {"text.txtar", `"delta":"Hello"`, "\n\"delta\":\"Hello\""},
		"no end":             {"text.txtar", "data: [DONE]\n\n", ""},
		"an id":              {"text.txtar", `"item_id":"msg_0`, `"item_id":"msg_1`},
		"an index":           {"text.txtar", `"output_index":0,"content_index"`, `"output_index":1,"content_index"`},
		"a text":             {"text.txtar", `"delta":"Hello"`, `"delta":"Hallo"`},
		"a last text":        {"text.txtar", `"content":[{"type":"output_text","text":"Hello`, `"content":[{"type":"output_text","text":"Hallo`},
		"no log probability": {"text.txtar", `,"logprobs":[]}`, `}`},
		"an output too soon": {"text.txtar", `"output":[]`, `"output":[{}]`},
		"a status":           {"text.txtar", `"status":"completed","error":null`, `"status":"failed","error":null`},
		"no usage":           {"text.txtar", `"usage":{`, `"use":{`},
		"an item with text":  {"reasoning.txtar", `"summary":[],"content":[]}`, `"summary":[],"content":[1]}`},
		"no details":         {"length.txtar", `"incomplete_details":{"reason":"max_output_tokens"}`, `"incomplete_details":null`},
		"no error":           {"failed-in-text.txtar", `"error":{"code"`, `"fault":{"code"`},
		"half an error":      {"failed-in-text.txtar", `,"param":null`, ``},
		"arguments":          {"function-calls.txtar", `"arguments":"{}"`, `"arguments":"{1}"`},
		"a function's name":  {"function-calls.txtar", `"name":"look","arguments":"{}"}`, `"name":"","arguments":"{}"}`},
		"an MCP call":        {"mcp.txtar", "response.mcp_call.completed", "response.mcp_call.done"},
		"an id twice":        {"function-calls.txtar", "000002", "000001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := string(joined(frames[tt.of]))
			changed := strings.ReplaceAll(stream, tt.old, tt.changed)
			if changed == stream {
				t.Fatal("nothing is changed")
			}
			if len(ResponsesProblems([]byte(changed))) == 0 {
				t.Errorf("nothing is wrong with\n%s", changed)
			}
		})
	}
}
