package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// accumulate is the message that a client makes of a stream, nil for one that ends in an error.
func accumulate(stream []byte) (map[string]any, error) {
	var message map[string]any
	var content []any
	open, ended := false, false
	var input string
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		head, data, ok := strings.Cut(frame, "\ndata: ")
		name, named := strings.CutPrefix(head, "event: ")
		event := gjson.Parse(data)
		if !ok || !named || !gjson.Valid(data) || event.Get("type").Str != name || ended {
			return nil, fmt.Errorf("an event that is none: %q", frame)
		}
		var block map[string]any
		if open {
			block = content[len(content)-1].(map[string]any)
		}
		if (message == nil) != (name == "message_start" || name == "error") && (name != "error" || ended) {
			return nil, fmt.Errorf("%s is out of order", name)
		}
		if i := event.Get("index"); i.Exists() && (int(i.Int()) != len(content)-1 || !open) && (name != "content_block_start" || open || int(i.Int()) != len(content)) {
			return nil, fmt.Errorf("index of %q with %d blocks, open: %t", frame, len(content), open)
		}
		switch name {
		case "message_start":
			message = event.Get("message").Value().(map[string]any)
		case "content_block_start":
			content, open, input = append(content, event.Get("content_block").Value()), true, ""
		case "content_block_delta":
			for field, v := range event.Get("delta").Value().(map[string]any) {
				switch text, _ := block[field].(string); field {
				case "type":
				case "partial_json":
					input += v.(string)
				default:
					block[field] = text + v.(string)
				}
			}
		case "content_block_stop":
			if open = false; input != "" {
				var object map[string]any
				if json.Unmarshal([]byte(input), &object) != nil {
					message["malformed"] = true
				}
				block["input"] = object
			}
		case "message_delta":
			maps.Copy(message, event.Get("delta").Value().(map[string]any))
			message["usage"] = event.Get("usage").Value()
		case "message_stop":
			ended = true
		case "error":
			return nil, nil
		}
	}
	if !ended || open {
		return nil, fmt.Errorf("the stream has no end")
	}
	if content != nil {
		message["content"] = content
	}
	return message, nil
}

// TestMessages_BeginsAnew: a request that is sent to a second engine has one start, and nothing of the first answer.
func TestMessages_BeginsAnew(t *testing.T) {
	t.Parallel()
	s := &Stream{ID: "msg_0"}
	s.Begin("m", 4096)
	dst := s.Append(nil, translate.Prompt{Total: 9})
	dst = s.Append(dst, translate.Text{Text: "\n"})
	if !s.IsEmpty() {
		t.Fatal("the stream isn't empty")
	}
	s.Begin("m", 4096)
	for _, ev := range []translate.Event{translate.Prompt{Total: 9}, translate.Text{Text: "Hi"}, translate.Finish{Reason: translate.FinishStop}} {
		dst = s.Append(dst, ev)
	}
	got, err := accumulate(dst)
	if err != nil || s.IsEmpty() {
		t.Fatal(err)
	}
	if text := got["content"].([]any)[0].(map[string]any)["text"]; text != "Hi" {
		t.Errorf("%q", text)
	}
}

func TestThinking_SignatureOfOmittedThoughtsHasThem(t *testing.T) {
	t.Parallel()
	const thought = "I \"call\"\n é"
	if got := signedThought(ThinkingOmitted.signature([]byte(thought))); got != thought {
		t.Errorf("%q", got)
	}
	for _, other := range []string{"", "lm", "lmo1", "lmo1%", ThinkingShown.signature([]byte(thought))} {
		if got := signedThought(other); got != "" {
			t.Errorf("%q has %q", other, got)
		}
	}
}
