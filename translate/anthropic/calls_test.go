package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Pieces of a call that the engine hasn't begun get into no other, and end no other block.
func TestStream_CallsStayApart(t *testing.T) {
	t.Parallel()
	start := func(i int, name string) translate.Event {
		return translate.CallStart{Index: i, ID: "id-" + name, Name: name}
	}
	args := func(i int, text string) translate.Event { return translate.CallArgs{Index: i, Text: text} }
	done := func(i int) translate.Event { return translate.CallDone{Index: i} }
	text := translate.Text{Text: "t"}
	for name, tt := range map[string]struct {
		events []translate.Event
		want   []string // each block
	}{
		"without a start, before text": {[]translate.Event{start(0, "a"), args(0, `{}`), args(1, `{"b":1}`), done(1), text, done(0)}, []string{`a{}`, "t"}},
		"without a start, at the end":  {[]translate.Event{start(0, "a"), args(0, `{}`), args(1, `{"b":1}`)}, []string{`a{}`}},
		"done within a text":           {[]translate.Event{text, done(0), text}, []string{"tt"}},
		"an index twice":               {[]translate.Event{start(0, "a"), args(0, `{}`), done(0), start(0, "b"), args(0, `{"b":2}`), done(0)}, []string{`a{}`, `b{"b":2}`}},
		"text between":                 {[]translate.Event{start(0, "a"), args(0, `{}`), start(1, "b"), args(1, `{"b":2}`), text, done(1), done(0)}, []string{`a{}`, `b{"b":2}`, "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Stream{ID: "msg_0"}
			var stream []byte
			for _, ev := range append(tt.events, translate.Finish{Reason: translate.FinishToolCalls}) {
				stream = s.Append(stream, ev)
			}
			if diff := cmp.Diff(tt.want, nestedBlocks(t, stream)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// nestedBlocks returns the content of each block, and checks that one ends before the next begins.
func nestedBlocks(t *testing.T, stream []byte) (blocks []string) {
	t.Helper()
	isOpen := false
	for line := range strings.Lines(string(stream)) {
		event := gjson.Parse(strings.TrimPrefix(line, "data: "))
		kind := event.Get("type").Str
		if !strings.HasPrefix(kind, "content_block_") {
			continue
		}
		begins := kind == "content_block_start"
		if begins {
			blocks = append(blocks, event.Get("content_block.name").Str)
		}
		if isOpen == begins || int(event.Get("index").Int()) != len(blocks)-1 {
			t.Errorf("out of order: %s", line)
		}
		isOpen = kind != "content_block_stop"
		if kind == "content_block_delta" {
			blocks[len(blocks)-1] += event.Get("delta.text").Str + event.Get("delta.partial_json").Str
		}
	}
	if isOpen {
		t.Error("the last block doesn't end")
	}
	return blocks
}
