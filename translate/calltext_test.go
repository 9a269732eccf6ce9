package translate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// noTools is the wire of a model whose template knows no tools.
var noTools = llamaserver.Wire{}.For(&request.Caps{Template: &request.Template{NoTools: true}})

// TestCallText: calls are found in the text of a model whose template knows none, however it is cut, and nothing else is lost.
func TestCallText(t *testing.T) {
	t.Parallel()
	const begin, end = request.CallBegin, request.CallEnd
	for name, tt := range map[string]struct {
		chat request.Chat
		text string
		want string // events
	}{
		"text":                       {request.Chat{}, "Hello [TOOL_REQ] you.\n", `text "Hello [TOOL_REQ] you.\n"; finish stop`},
		"a call":                     {request.Chat{}, begin + `{"name": "f", "arguments": {"a": "}"}}` + end, `call 0 f; args 0 {"a": "}"}; done 0; finish tool_calls`},
		"a call in white space":      {request.Chat{}, "\n" + begin + "\n" + `{"name": "f", "arguments": {}}` + "\n" + end + "\n", `call 0 f; args 0 {}; done 0; finish tool_calls`},
		"no arguments":               {request.Chat{}, begin + `{"name": "f"}` + end, `call 0 f; done 0; finish tool_calls`},
		"two calls and texts":        {request.Chat{}, "I do.\n" + begin + `{"name": "f"}` + end + "\n" + begin + `{"name": "g"}` + end + " Done.", `text "I do."; call 0 f; done 0; call 1 g; done 1; text " Done."; finish tool_calls`},
		"one call of two":            {request.Chat{SingleCall: true}, begin + `{"name": "f"}` + end + "\n" + begin + `{"name": "g"}` + end, `call 0 f; done 0; finish tool_calls`},
		"without the last mark":      {request.Chat{}, begin + `{"name": "f"}`, `call 0 f; done 0; finish tool_calls`},
		"a call that is cut off":     {request.Chat{}, begin + `{"name": "f", "arg`, `text "[TOOL_REQUEST]{\"name\": \"f\", \"arg"; finish stop`},
		"no JSON":                    {request.Chat{}, "a " + begin + `f()` + end + "b", `text "a [TOOL_REQUEST]f()[END_TOOL_REQUEST]b"; finish stop`},
		"arguments that are none":    {request.Chat{}, begin + `{"name": "f", "arguments": [1]}` + end, `text "[TOOL_REQUEST]{\"name\": \"f\", \"arguments\": [1]}[END_TOOL_REQUEST]"; finish stop`},
		"no tools":                   {request.Chat{NoTools: true}, begin + `{"name": "f"}` + end, `text "[TOOL_REQUEST]{\"name\": \"f\"}[END_TOOL_REQUEST]"; finish stop`},
		"a stop string":              {request.Chat{Stops: []string{"END"}}, "a" + begin + `{"name": "f"}` + end + "b END c", `text "a"; call 0 f; done 0; text "b "; finish stop`},
		"a mark without another":     {request.Chat{}, "a " + end + " b", `text "a [END_TOOL_REQUEST] b"; finish stop`},
		"the beginning of a mark":    {request.Chat{}, "a [TOOL_", `text "a [TOOL_"; finish stop`},
		"a mark after its beginning": {request.Chat{}, "[TOOL_" + begin + `{"name": "f"}` + end, `text "[TOOL_"; call 0 f; done 0; finish tool_calls`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(tt.text); size += 1 + size/4 {
				var pieces []string
				for rest := tt.text; rest != ""; {
					n := min(size, len(rest))
					pieces, rest = append(pieces, rest[:n]), rest[n:]
				}
				events, _ := decodeCut(t, wire.DecoderOf(noTools, &tt.chat, noTools.Decoder()), spoken(pieces...))
				wantGrammar(t, events)
				if diff := cmp.Diff(tt.want, outline(events)); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// TestCallText_IsNotHeldBack: text is passed on as soon as it can't be the beginning of a call.
func TestCallText_IsNotHeldBack(t *testing.T) {
	t.Parallel()
	d := wire.DecoderOf(noTools, &request.Chat{}, noTools.Decoder())
	stream, _, _ := bytes.Cut(spoken("Hello", " [you", "]", " and", " [TOOL_", "REQUEST"), []byte(`data: {"choices":[{"finish_reason":"stop"`))
	var events []translate.Event
	if err := d.Feed(stream, func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := outline(events), `text "Hello [you] and"`; got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}

// outline describes what an answer says.
func outline(events []translate.Event) string {
	var all []string
	text, thought := "", "" // a thought comes before the text
	flush := func() {
		if thought != "" {
			all, thought = append(all, fmt.Sprintf("thought %q", thought)), ""
		}
		if text != "" {
			all, text = append(all, fmt.Sprintf("text %q", text)), ""
		}
	}
	for _, ev := range events {
		var says string
		switch ev := ev.(type) {
		case translate.Reasoning:
			thought += ev.Text
			continue
		case translate.Text:
			text += ev.Text
			continue
		case translate.CallStart:
			says = fmt.Sprintf("call %d %s", ev.Index, ev.Name)
		case translate.CallArgs:
			says = fmt.Sprintf("args %d %s", ev.Index, ev.Text)
		case translate.CallDone:
			says = fmt.Sprintf("done %d", ev.Index)
		case translate.Finish:
			says = "finish " + string(ev.Reason)
		default:
			continue
		}
		flush()
		all = append(all, says)
	}
	flush()
	return strings.Join(all, "; ")
}
