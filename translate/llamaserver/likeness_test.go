package llamaserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// answerOf is a stream of chunks with these deltas and timings. If they are alike, they differ only in these.
func answerOf(alike bool, deltas []string, timings func(i int) string) string {
	var b strings.Builder
	for i, delta := range deltas {
		created := 1795205498
		if !alike {
			created += i
		}
		fmt.Fprintf(&b, `data: {"choices":[{"finish_reason":null,"index":0,"delta":%s}],"created":%d,"id":"x"%s}`+"\n\n", delta, created, timings(i))
	}
	return b.String() + `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"x"}` + "\n\ndata: [DONE]\n\n"
}

func eventsOf(t *testing.T, stream string) (all []translate.Event) {
	t.Helper()
	emit := func(ev translate.Event) error {
		all = append(all, ev)
		return nil
	}
	d := Wire{}.Decoder()
	if err := d.Feed([]byte(stream), emit); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(emit); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDecoder_ChunksAlike: a chunk that is like the last one means the same as if it were parsed.
func TestDecoder_ChunksAlike(t *testing.T) {
	t.Parallel()
	none := func(int) string { return "" }
	counted := func(i int) string { return fmt.Sprintf(`,"timings":{"predicted_n":%d,"prompt_n":7,"cache_n":2}`, i+1) }
	for name, tt := range map[string]struct {
		deltas  []string
		timings func(int) string
	}{
		"text":                  {[]string{`{"content":"a"}`, `{"content":"b\n\u00e9"}`, `{"content":""}`, `{"content":"\""}`}, none},
		"text with timings":     {[]string{`{"content":"a"}`, `{"content":"b"}`, `{"content":"c"}`}, counted},
		"timings now and then":  {[]string{`{"content":"a"}`, `{"content":"b"}`, `{"content":"c"}`, `{"content":"d"}`}, func(i int) string { return counted(i)[:i%2*len(counted(i))] }},
		"thinking again":        {[]string{`{"content":"a"}`, `{"content":"b"}`, `{"content":"c"}`, `{"reasoning_content":"é"}`, `{"content":"d"}`}, counted},
		"other things in it":    {[]string{`{"content":"a"}`, `{"content":"b","reasoning_content":"c"}`, `{"content":"d"}`, `{"content":null}`}, none},
		"calls between":         {[]string{`{"content":"a"}`, `{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}`, `{"content":"b"}`}, none},
		"timings that are deep": {[]string{`{"content":"a"}`, `{"content":"b"}`}, func(i int) string { return fmt.Sprintf(`,"timings":{"predicted_n":%d,"more":{"a":1}}`, i) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := eventsOf(t, answerOf(false, tt.deltas, tt.timings))
			if diff := cmp.Diff(want, eventsOf(t, answerOf(true, tt.deltas, tt.timings))); diff != "" {
				t.Errorf("(-parsed +alike):\n%s", diff)
			}
			if _, finished := want[len(want)-1].(translate.Finish); !finished {
				t.Errorf("it ended with %v", want[len(want)-1])
			}
		})
	}
}

// TestDecoder_BrokenChunksAlike: a chunk that only begins like the last one is refused as any other.
func TestDecoder_BrokenChunksAlike(t *testing.T) {
	t.Parallel()
	const good = `{"choices":[{"index":0,"delta":{"content":"a"}}],"id":"x"}`
	const timed = `{"choices":[{"index":0,"delta":{"content":"a"}}],"id":"x","timings":{"predicted_n":1}}`
	for _, chunks := range [][2]string{
		{good, strings.TrimSuffix(good, "}")},
		{good, strings.Replace(good, `"a"`, `"a`, 1)},
		{good, good + "}"},
		{timed, strings.TrimSuffix(timed, `{"predicted_n":1}}`)},
		{timed, strings.TrimSuffix(timed, "}")},
		{timed, strings.Replace(timed, "1}}", `1"}}`, 1)},
	} {
		all := eventsOf(t, "data: "+chunks[0]+"\n\ndata: "+chunks[1]+"\n\n"+"data: [DONE]\n\n")
		if fault, ok := all[len(all)-1].(translate.Fault); !ok || !cmp.Equal(fault.Err, translate.Nonsense()) {
			t.Errorf("%s: %v", chunks[1], all)
		}
	}
}

// TestLikeness: only a chunk that tells nothing but its text and timings is learnt.
func TestLikeness(t *testing.T) {
	t.Parallel()
	const timings = `,"timings":{"predicted_n":1}}`
	plain := `{"choices":[{"index":0,"delta":{"content":"a"}}],"id":"x"}`
	for first, second := range map[string]string{
		plain:                                    strings.Replace(plain, `"a"`, `"b\n"`, 1),
		strings.TrimSuffix(plain, "}") + timings: strings.TrimSuffix(plain, "}") + strings.Replace(timings, "1", "23", 1),
	} {
		var l likeness
		l.learnt(t, first)
		if _, _, ok := l.match([]byte(second)); !ok {
			t.Errorf("%s isn't like %s", second, first)
		}
		for _, other := range []string{second + "}", second[:len(second)-1], strings.Replace(second, "timings", "timing", 1) + " ", strings.Replace(second, `"}}]`, `","more":1}}]`, 1)} {
			if _, _, ok := l.match([]byte(other)); ok {
				t.Errorf("%s is taken for one like %s", other, first)
			}
		}
	}
	for _, more := range []string{`,"usage":{"prompt_tokens":1}`, `,"__verbose":{}`, `,"other":1`} {
		var l likeness
		chunk := strings.TrimSuffix(plain, "}") + more + "}"
		l.learnt(t, chunk)
		if _, _, ok := l.match([]byte(chunk)); ok {
			t.Errorf("%s is learnt", chunk)
		}
	}
}

func (l *likeness) learnt(t *testing.T, data string) {
	t.Helper()
	var c chunk
	raw := []byte(data)
	if !c.parse(raw) {
		t.Fatal(data)
	}
	l.learn(raw, &c)
}
