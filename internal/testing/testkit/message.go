package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/tidwall/gjson"
)

// Message returns what a client makes of a stream of the Messages API, nil if the stream ends in an error.
func Message(stream []byte) (map[string]any, error) {
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
