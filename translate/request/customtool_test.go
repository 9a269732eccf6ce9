package request

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// TestInputReader: however the arguments are cut, the pieces are the input, and none has half an escape.
func TestInputReader(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"input":"*** Begin Patch\n+\"a\"\t\\n\u00e9\ud83d\ude00é"}`: "*** Begin Patch\n+\"a\"\t\\né😀é",
		` { "input" : "" } `:                   "",
		`{"input":"a","input":"b"}`:            "a",
		`{"input":"half \ud83d, half \ude00"}`: "half \uFFFD, half \uFFFD",
		`{"input":"half \ud83d\n"}`:            "half \uFFFD\n",
		`{"input":"cut off \ud83d\u00`:         "cut off ",
		`{"input":"cut off \`:                  "cut off ",
		`{"other":1,"input":"\u00e9"}`:         "é",
		`{}`:                                   "",
		`"only \"text\""`:                      `only "text"`,
		`*** Begin Patch`:                      "*** Begin Patch",
		`{"patch":"x"}`:                        `{"patch":"x"}`,
		`{"input":{"a":1}}`:                    `{"input":{"a":1}}`,
	} {
		if got := CustomInput(arguments); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
		for size := 1; size <= len(arguments); size++ {
			var r InputReader
			var pieces strings.Builder
			for at := 0; at < len(arguments); at += size {
				pieces.WriteString(r.Next(arguments[:min(at+size, len(arguments))]))
			}
			if got := pieces.String(); r.at > 0 && got != want {
				t.Errorf("%s in pieces of %d: %q, want %q", arguments, size, got, want)
			}
		}
	}
	if got := CustomInput(string(CustomArguments("a\"\n\\😀"))); got != "a\"\n\\😀" {
		t.Errorf("%q", got)
	}
}

func TestNewCustomTool(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		``:                `D`,
		`{"type":"text"}`: `D`,
		`{"type":"grammar","syntax":"lark","definition":"start: \"a\""}`:      "D\n\nThe input must match this grammar (lark):\nstart: \"a\"",
		`{"type":"grammar","grammar":{"syntax":"regex","definition":"[ab]"}}`: "D\n\nThe input must match this grammar (regex):\n[ab]",
		`{"type":"grammar"}`:                   "missing_required_parameter f.definition",
		`{"type":"grammar","definition":1}`:    "invalid_type f.definition",
		`{"type":"grammar","grammar":{"a":1}}`: "missing_required_parameter f.grammar.definition",
		`"text"`:                               "invalid_type f",
	} {
		tool, err := NewCustomTool("n", "D", gjson.Parse(format), "f", new(schema.Work))
		got := gjson.Get(tool.Definition, "function.description").Str
		if err != nil {
			got = err.Code + " " + err.Param
		} else if gjson.Get(tool.Definition, "function.parameters").Raw != customParameters {
			t.Errorf("%s: %s", format, tool.Definition)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}
