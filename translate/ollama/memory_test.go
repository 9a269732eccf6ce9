package ollama

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestMemory_IsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, m := range []Memory{
		{"", turns("")},
		{"Be brief.", turns("Hi")},
		{"", turns("a", "b", "\x00\"\\\n€", "😀", "c")},
		{"s", turns(strings.Repeat("\x01", maxMemory-11))},
		{"s", []translate.Part{{Quoted: []byte(strings.Repeat(`\n`, maxMemory-11))}}},
	} {
		text := string(m.Append(nil, []byte("the answer")))
		gjson.Parse(text).ForEach(func(_, n gjson.Result) bool {
			if n.Int() < 0 || n.Int() >= 1<<24 {
				t.Errorf("%s isn't like the number of a token", n.Raw)
			}
			return true
		})
		got, bad := parseContext(gjson.Parse(text))
		if bad != nil {
			t.Errorf("%.100v: %v", m, bad)
			continue
		}
		if diff := cmp.Diff(&Memory{m.System, turns(append(texts(m.Turns), "the answer")...)}, got); diff != "" {
			t.Errorf("%.500s", diff)
		}
	}
	for _, m := range []Memory{{Turns: turns(strings.Repeat("a", maxMemory))}, {"s", []translate.Part{{Quoted: []byte(strings.Repeat(`\n`, maxMemory-1))}}}} {
		if got := string(m.Append(nil, []byte("b"))); got != "[]" || !m.fits(0) {
			t.Errorf("%.100s", got)
		}
	}
}

func turns(texts ...string) []translate.Part {
	all := make([]translate.Part, len(texts))
	for i := range all {
		all[i].Text = texts[i]
	}
	return all
}

func texts(turns []translate.Part) (all []string) {
	for i := range turns {
		all = append(all, turns[i].Plain())
	}
	return all
}

func TestParseContext_RefusesWhatIsForeign(t *testing.T) {
	t.Parallel()
	mark := strconv.Itoa(contextMark)
	encode := func(text string) string {
		numbers := mark
		for ; len(text) >= 3; text = text[3:] {
			numbers += "," + strconv.Itoa(int(text[0])<<16|int(text[1])<<8|int(text[2]))
		}
		return "[" + numbers + "]"
	}
	for _, text := range []string{"", "null", "[]", "[ ]"} {
		if got, bad := parseContext(gjson.Parse(text)); bad != nil || got.System != "" || len(got.Turns) != 0 {
			t.Errorf("%s: %v %v", text, got, bad)
		}
	}
	if got, bad := parseContext(gjson.Parse(encode(`["","a","b"]  `))); bad != nil || len(got.Turns) != 2 {
		t.Errorf("%v %v", got, bad)
	}
	for _, text := range []string{
		"[1,2,3]", "[-1]", "[1e300]", "[" + mark + ",-1]", "[" + mark + ",16777216]", "[" + mark + ",0.5]", "[" + mark + ".5]", `["a"]`, "[null]", "[" + mark + ",null]", "{}", `"a"`, "5", "true", `[[1]]`,
		encode("[[[[[["), encode(`["","a"] `), encode(`[1,2,3]  `), encode(`["","a",{}] `), encode(`{"a":"b"}`), "[" + mark + strings.Repeat(",0", 20) + "]",
		"[" + mark + strings.Repeat(",2105376", maxEncoded/3+2) + "]", encode(`[` + strings.Repeat(`"",`, 16385) + `"a"] `),
	} {
		if got, bad := parseContext(gjson.Parse(text)); bad == nil || bad.Status() != 400 || !strings.Contains(bad.Message, "context") {
			t.Errorf("%.100s: %.200v %v", text, got, bad)
		}
	}
}
