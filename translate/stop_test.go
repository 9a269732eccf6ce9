package translate_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// The log probabilities are those of the tokens that begin in the emitted text.
func TestStop_LogprobsAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stops, tokens []string
		text          string
		told          int // number of tokens emitted
	}{
		"none of the stop string's":            {[]string{" END"}, []string{"a", "b", " END", "c"}, "ab", 2},
		"at the beginning":                     {[]string{"a"}, []string{"a", "b"}, "", 0},
		"one that the string begins in":        {[]string{"b"}, []string{"ab", "c"}, "a", 1},
		"one that was partly told before":      {[]string{"se c"}, []string{"a", "se", " b", "se", " c"}, "ase b", 3},
		"one that was held back in part":       {[]string{"bcd"}, []string{"aab", "b", "cd"}, "aab", 1},
		"two of a text that was held back":     {[]string{"xyz"}, []string{"ax", "y", "xy", "z"}, "axy", 2},
		"all of a text without a stop string":  {[]string{"zz"}, []string{"a", "z"}, "az", 2},
		"a letter of two tokens before a stop": {[]string{"z"}, []string{"\xc3", "\xa4", "z"}, "\u00e4", 2},
		"a letter of two tokens within a stop": {[]string{"\u00e4z"}, []string{"b", "\xc3", "\xa4", "z"}, "b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := wire.DecoderOf(llamaserver.Wire{}, &request.Chat{Stops: tt.stops, Logprobs: true}, llamaserver.Wire{}.Decoder())
			text, told := "", 0
			emit := func(ev translate.Event) error {
				switch ev := ev.(type) {
				case translate.Text:
					text += ev.Text
				case translate.Logprobs:
					told += len(gjson.ParseBytes(ev.Content).Array())
				}
				return nil
			}
			for _, frame := range likely(tt.tokens) {
				if err := d.Feed([]byte("data: "+frame+"\n\n"), emit); err != nil && !errors.Is(err, translate.ErrCut) {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.text, text); diff != "" {
				t.Errorf("the text (-want +got):\n%s", diff)
			}
			if told != tt.told {
				t.Errorf("%d log probabilities are told, want %d", told, tt.told)
			}
		})
	}
}

// Log probabilities that are asked for by n_probs are those of the text, too.
func TestStop_LogprobsByNProbs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"messages":[{"role":"user","content":"Hi"}],"stop":"END","n_probs":2}`:                    2,
		`{"messages":[{"role":"user","content":"Hi"}],"stop":"END","logprobs":false,"n_probs":2}`:   2,
		`{"messages":[{"role":"user","content":"Hi"}],"stop":"END","logprobs":true,"n_probs":null}`: 2,
	} {
		chat, bad := openai.ParseChat(testkit.Scan(t, body), capsOf(request.Caps{}))
		if bad != nil {
			t.Fatal(bad)
		}
		told := 0
		d := wire.DecoderOf(llamaserver.Wire{}, chat, llamaserver.Wire{}.Decoder())
		for _, frame := range likely([]string{"a", "bEND"}) {
			err := d.Feed([]byte("data: "+frame+"\n\n"), func(ev translate.Event) error {
				if probs, ok := ev.(translate.Logprobs); ok {
					told += len(gjson.ParseBytes(probs.Content).Array())
				}
				return nil
			})
			if err != nil && !errors.Is(err, translate.ErrCut) {
				t.Fatal(err)
			}
		}
		if told != want {
			t.Errorf("%s: %d log probabilities are told, want %d", body, told, want)
		}
	}
}

// Text that is held back comes before the end of a call that is open.
func TestStop_HeldTextBeforeTheEndOfACall(t *testing.T) {
	t.Parallel()
	d := wire.DecoderOf(llamaserver.Wire{}, &request.Chat{Stops: []string{"END"}}, llamaserver.Wire{}.Decoder())
	var events []translate.Event
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	for _, frame := range []string{
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}`,
		`{"choices":[{"delta":{"content":"aE"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
	} {
		if err := d.Feed([]byte("data: "+frame+"\n\n"), emit); err != nil {
			t.Fatal(err)
		}
	}
	want := []translate.Event{translate.CallStart{ID: "a", Name: "f"}, translate.Text{Text: "a"}, translate.Text{Text: "E"}, translate.CallDone{}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStop_ATokenWithoutLogprobs: a drafted token has none. The next one is neither waited for nor counted.
func TestStop_ATokenWithoutLogprobs(t *testing.T) {
	t.Parallel()
	chunk := func(text string, tokens int) string {
		return `data: {"choices":[{"delta":{"content":"` + text + `"}}],"timings":{"prompt_n":4,"predicted_n":` + strconv.Itoa(tokens) + `}}` + "\n\n"
	}
	for name, reads := range map[string][]string{
		"one at a time": {chunk("a", 1), chunk("END", 2)},
		"all at once":   {chunk("a", 1) + chunk("END", 2) + chunk("c", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := wire.DecoderOf(llamaserver.Wire{}, &request.Chat{Stops: []string{"END"}, Logprobs: true}, llamaserver.Wire{}.Decoder())
			var events []translate.Event
			var err error
			for i, read := range reads {
				err = d.Feed([]byte(read), func(ev translate.Event) error {
					events = append(events, ev)
					return nil
				})
				if i == 0 && (len(events) == 0 || events[0] != translate.Event(translate.Text{Text: "a"})) {
					t.Errorf("after the first: %v", events)
				}
			}
			want := []translate.Event{
				translate.Text{Text: "a"},
				translate.Usage{Prompt: 4, Completion: 2},
				translate.Stop{Reason: translate.StopString, Text: "END"},
				translate.Finish{Reason: translate.FinishStop},
			}
			if diff := cmp.Diff(want, events); diff != "" || !errors.Is(err, translate.ErrCut) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Without a usage before the end, the tokens of an answer that is cut off are counted.
func TestStop_UsageOfTheTextSeen(t *testing.T) {
	t.Parallel()
	d := wire.DecoderOf(llamaserver.Wire{}, &request.Chat{Stops: []string{"END"}}, llamaserver.Wire{}.Decoder())
	var events []translate.Event
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	for _, frame := range []string{
		`{"choices":[{"delta":{"content":null}}],"prompt_progress":{"total":9,"cache":4,"processed":9}}`,
		`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{"content":"END"}}]}`,
	} {
		if err := d.Feed([]byte("data: "+frame+"\n\n"), emit); err != nil && !errors.Is(err, translate.ErrCut) {
			t.Fatal(err)
		}
	}
	want := []translate.Event{
		translate.Prompt{Total: 9, Cached: 4, Processed: 9},
		translate.Text{Text: "a"},
		translate.Text{Text: "b"},
		translate.Usage{Prompt: 9, Cached: 4, Completion: 3},
		translate.Stop{Reason: translate.StopString, Text: "END"},
		translate.Finish{Reason: translate.FinishStop},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// likely returns an engine's stream of tokens with their log probabilities. A letter is sent with its last token.
func likely(tokens []string) (frames []string) {
	held, probs := "", ""
	for _, token := range tokens {
		var numbers []byte
		for _, c := range []byte(token) {
			numbers = append(jsonbody.AppendComma(numbers), strconv.Itoa(int(c))...)
		}
		if probs != "" {
			probs += ","
		}
		probs += fmt.Sprintf(`{"id":1,"token":%s,"bytes":[%s],"logprob":-1,"top_logprobs":[]}`, jsonbody.AppendString(nil, "?"), numbers)
		if held += token; held == "\xc3" {
			continue
		}
		frames = append(frames, fmt.Sprintf(`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":%s},"logprobs":{"content":[%s]}}],"id":"x"}`, jsonbody.AppendString(nil, held), probs))
		held, probs = "", ""
	}
	return append(frames, `{"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}`, "[DONE]")
}
