package jsonbody

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestScan_Refuses(t *testing.T) {
	t.Parallel()
	const notValid = "The request body is not valid JSON: "
	tests := map[string]struct {
		body, want string
	}{
		"nothing":          {"", "The request body is empty; a JSON object is expected."},
		"space":            {" \t\r\n", "The request body is empty; a JSON object is expected."},
		"array":            {`[{"model":"m"}]`, "The request body must be a JSON object."},
		"string":           {`"model"`, "The request body must be a JSON object."},
		"null":             {`null`, "The request body must be a JSON object."},
		"NaN":              {`NaN`, "The request body must be a JSON object."},
		"byte order mark":  {"\ufeff{}", "The request body must be a JSON object."},
		"form":             {`model=m&stream=true`, "The request body must be a JSON object."},
		"invalid UTF-8":    {"{\"a\":\"\xff\"}", "The request body is not valid UTF-8."},
		"overlong UTF-8":   {"{\"a\":\"\xc0\xaf\"}", "The request body is not valid UTF-8."},
		"UTF-8 surrogate":  {"{\"a\":\"\xed\xa0\x80\"}", "The request body is not valid UTF-8."},
		"cut UTF-8":        {"{\"a\":\"\xe6\x97", "The request body is not valid UTF-8."},
		"trailing garbage": {`{"a":1} x`, notValid + `'x' at byte 8 after the JSON object.`},
		"trailing object":  {`{"a":1}{"a":2}`, notValid + `'{' at byte 7 after the JSON object.`},
		"trailing comma":   {`{"a":1,}`, notValid + `'}' at byte 7 where a field's name in double quotes is expected.`},
		"comma only":       {`{,}`, notValid + `',' at byte 1 where a field's name in double quotes is expected.`},
		"no comma":         {`{"a":1 "b":2}`, notValid + `'"' at byte 7 where ',' or '}' is expected.`},
		"no colon":         {`{"a" 1}`, notValid + `'1' at byte 5 where ':' is expected.`},
		"two colons":       {`{"a"::1}`, notValid + `':' at byte 5 where a value is expected.`},
		"no value":         {`{"a":}`, notValid + `'}' at byte 5 where a value is expected.`},
		"bare name":        {`{a:1}`, notValid + `'a' at byte 1 where a field's name in double quotes is expected.`},
		"single quotes":    {`{'a':1}`, notValid + `'\'' at byte 1 where a field's name in double quotes is expected.`},
		"comment":          {`{"a":1/**/}`, notValid + `'/' at byte 6 where ',' or '}' is expected.`},
		"not ASCII":        {`{"a":é}`, notValid + `'é' at byte 5 where a value is expected.`},
		"other quotes":     {`{“a”:1}`, notValid + `'“' at byte 1 where a field's name in double quotes is expected.`},
		"ends in object":   {`{`, notValid + `it ends where a field's name in double quotes is expected.`},
		"ends in name":     {`{"a`, notValid + `it ends inside a string.`},
		"ends after name":  {`{"a"`, notValid + `it ends where ':' is expected.`},
		"ends after colon": {`{"a":`, notValid + `it ends where a value is expected.`},
		"ends after value": {`{"a":1`, notValid + `it ends where ',' or '}' is expected.`},
		"ends after comma": {`{"a":1,`, notValid + `it ends where a field's name in double quotes is expected.`},
		"ends in array":    {`{"a":[`, notValid + `it ends where a value is expected.`},
		"ends in string":   {`{"a":"b`, notValid + `it ends inside a string.`},
		"ends in inner":    {`{"a":{"b":[1]`, notValid + `it ends where ',' or '}' is expected.`},
		"array comma":      {`{"a":[1,]}`, notValid + `']' at byte 8 where a value is expected.`},
		"array no comma":   {`{"a":[1 2]}`, notValid + `'2' at byte 8 where ',' or ']' is expected.`},
		"array closed by }": {
			`{"a":[1}`, notValid + `'}' at byte 7 where ',' or ']' is expected.`,
		},
		"inner bare name":   {`{"a":{b:1}}`, notValid + `'b' at byte 6 where a field's name in double quotes is expected.`},
		"inner no colon":    {`{"a":{"b"1}}`, notValid + `'1' at byte 9 where ':' is expected.`},
		"inner comma":       {`{"a":{"b":1,}}`, notValid + `'}' at byte 12 where a field's name in double quotes is expected.`},
		"newline":           {"{\"a\":\"b\nc\"}", notValid + `'\n' at byte 7 in a string: a control character must be escaped.`},
		"tab":               {"{\"a\":\"\t\"}", notValid + `'\t' at byte 6 in a string: a control character must be escaped.`},
		"NUL":               {"{\"a\":\"\x00\"}", notValid + `'\x00' at byte 6 in a string: a control character must be escaped.`},
		"control in name":   {"{\"a\x1f\":1}", notValid + `'\x1f' at byte 3 in a string: a control character must be escaped.`},
		"bad escape":        {`{"a":"\x41"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"escape of '":       {`{"a":"\'"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"short \\u":         {`{"a":"\u12"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"not hex \\u":       {`{"a":"\u12g4"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"half hex \\u":      {`{"a":"\u123g"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"\\U":               {`{"a":"\U0001f389"}`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"ends in escape":    {`{"a":"\`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"ends in \\u":       {`{"a":"\u00`, notValid + `'\\' at byte 6 in a string: a bad escape.`},
		"number 01":         {`{"a":01}`, notValid + `'1' at byte 6 where ',' or '}' is expected.`},
		"number 1.":         {`{"a":1.}`, notValid + `'}' at byte 7 in a number.`},
		"number .5":         {`{"a":.5}`, notValid + `'.' at byte 5 where a value is expected.`},
		"number +1":         {`{"a":+1}`, notValid + `'+' at byte 5 where a value is expected.`},
		"number 1e":         {`{"a":1e}`, notValid + `'}' at byte 7 in a number.`},
		"number 1e+":        {`{"a":1e+}`, notValid + `'}' at byte 8 in a number.`},
		"number -":          {`{"a":-}`, notValid + `'}' at byte 6 in a number.`},
		"number --1":        {`{"a":--1}`, notValid + `'-' at byte 6 in a number.`},
		"number -01":        {`{"a":-01}`, notValid + `'1' at byte 7 where ',' or '}' is expected.`},
		"number 0x10":       {`{"a":0x10}`, notValid + `'x' at byte 6 where ',' or '}' is expected.`},
		"number 1_000":      {`{"a":1_000}`, notValid + `'_' at byte 6 where ',' or '}' is expected.`},
		"number ends":       {`{"a":1.`, notValid + `it ends in a number.`},
		"NaN value":         {`{"a":NaN}`, notValid + `'N' at byte 5 where a value is expected.`},
		"Infinity value":    {`{"a":Infinity}`, notValid + `'I' at byte 5 where a value is expected.`},
		"True":              {`{"a":True}`, notValid + `'T' at byte 5 where a value is expected.`},
		"tru":               {`{"a":tru}`, notValid + `'t' at byte 5 where a value is expected.`},
		"nul":               {`{"a":nul`, notValid + `'n' at byte 5 where a value is expected.`},
		"nulll":             {`{"a":nulll}`, notValid + `'l' at byte 9 where ',' or '}' is expected.`},
		"undefined":         {`{"a":undefined}`, notValid + `'u' at byte 5 where a value is expected.`},
		"vertical tab":      {"{\v}", notValid + `'\v' at byte 1 where a field's name in double quotes is expected.`},
		"no-break space":    {"{\u00a0}", notValid + `'\u00a0' at byte 1 where a field's name in double quotes is expected.`},
		"objects too deep":  {nested(`{"a":`, "1", `}`, MaxDepth+1), "The request body is nested more than 256 levels deep."},
		"arrays too deep":   {`{"a":` + nested(`[`, "", `]`, MaxDepth) + `}`, "The request body is nested more than 256 levels deep."},
		"hostile depth":     {`{"a":` + strings.Repeat("[", 1<<20), "The request body is nested more than 256 levels deep."},
		"too many fields":   {manyFields(MaxFields + 1), "The request body has more than 256 fields."},
		"far too many, cut": {strings.TrimSuffix(manyFields(100_000), "}"), "The request body has more than 256 fields."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Scan([]byte(tt.body))
			if diff := cmp.Diff(translate.Invalid("invalid_json", "", tt.want), err); diff != "" || b != nil {
				t.Errorf("body %v, error (-want +got):\n%s", b, diff)
			}
		})
	}
}

// TestScan_RefusesDuplicatesWithin: two readers of JSON could take different ones.
func TestScan_RefusesDuplicatesWithin(t *testing.T) {
	t.Parallel()
	many := manyFields(3 * manyNames)
	for name, body := range map[string]string{
		"a message":        `{"messages":[{"role":"user","content":"a","role":"system"}]}`,
		"a part":           `{"messages":[{"role":"user","content":[{"type":"text","typ\u0065":"image_url","text":"a"}]}]}`,
		"an image":         `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"a","url":"b"}}]}]}`,
		"a schema":         `{"response_format":{"json_schema":{"schema":{}},"json_schema":{}}}`,
		"among many":       `{"a":` + many[:len(many)-1] + `,"f1":0}}`,
		"the last of many": `{"a":` + many[:len(many)-1] + `,"x":0,"x":0}}`,
		"after an object":  `{"a":{"b":{"c":1},"b":2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Scan([]byte(body)); err == nil || err.Code != "duplicate_field" {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}

func TestScan_RefusesHalfSurrogatePairs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\ud800`, `\uDC00`, `\ud800a`, `\ud800\u0041`, `\ud800\ud800`, `\udc00\ud800`, `\uDBFF\n`, `a\udfff`} {
		for _, body := range []string{`{"a":"` + text + `"}`, `{"` + text + `":1}`, `{"messages":[{"role":"user","content":"` + text + `"}]}`} {
			if _, err := Scan([]byte(body)); err == nil || !strings.Contains(err.Message, "half a surrogate pair") {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}

func TestScan_Escapes(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`\ud800\udc00`: true, `\uD8FF\uDFFF`: true, `\ud900\udc00`: true, `\uDA00\uDD00`: true, `\udbff\ude00`: true, `\ud7ff`: true, `\ue000`: true, `\ud700a`: true,
		`\udbff\ud800`: false, `\udbff\uc000`: false, `\udbff/udc00`: false, `\ud800\udbff`: false,
		`\u0af9`: true, `\u0AF9`: true, `\u000g`: false, `\u000G`: false, "\\u000`": false, `\u000@`: false, `\u000/`: false, `\u000:`: false,
		`\u00`: false, `\`: false, `\x`: false,
	} {
		if _, err := Scan([]byte(`{"a":"` + text + `"}`)); (err == nil) != ok {
			t.Errorf("%s: %v, want it to be valid: %t", text, err, ok)
		}
	}
}

func TestScan_Messages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", MaxNameLength)
	for message, plain := range map[string]bool{
		`{"role":"user","content":"Hi"}`:                                     true,
		`{"content":"Hi","role":"tool","name":"a"}`:                          true,
		`{"content":"Hi","role":"tool","tool_call_id":"1"}`:                  false,
		`{"role":"user","content":"Hi","name":"` + long[:len(long)-2] + `"}`: true,
		`{"role":"user","content":"Hi","name":"` + long + `"}`:               false,
		`{"role":"user","content":"Hi","name":1}`:                            false,
		`{"role":"user","name":"a"}`:                                         false,
		`{"content":"Hi"}`:                                                   false,
		`{"role":"function","content":"Hi"}`:                                 false,
		`{"role":"function","content":"Hi","name":"a"}`:                      false,
		`{"role":"user","content":["Hi"],"name":"a"}`:                        false,
		`{"role":"user","content":null}`:                                     false,
		`{"role":"user","content":"Hi","x":"y"}`:                             false,
		`{"r\u006fle":"user","content":"Hi"}`:                                false,
		`{}`:                                                                 false,
		`"Hi"`:                                                               false,
		`7`:                                                                  false,
	} {
		b := scanned(t, `{"other":[{"role":"user","content":"Hi"}],"messages":[ `+message+` ,{"role":"user","content":"Hi"}]}`)
		if len(b.Messages) != 2 || !b.Messages[1].Plain {
			t.Fatalf("%s: %+v", message, b.Messages)
		}
		if m := b.Messages[0]; m.Plain != plain || string(b.Raw[m.From:m.To]) != message {
			t.Errorf("%s: %+v, want it to be plain: %t", message, m, plain)
		}
	}
	for _, body := range []string{`{"messages":{"role":"user","content":"Hi"}}`, `{"messages":[]}`, `{"message":[1]}`} {
		if b := scanned(t, body); len(b.Messages) != 0 {
			t.Errorf("%s: %+v", body, b.Messages)
		}
	}
}

// TestScan_MessagesAlike: a message that begins like an earlier one may go on in another way.
func TestScan_MessagesAlike(t *testing.T) {
	t.Parallel()
	for second, plain := range map[string]bool{
		`{"role":"user","content":"b"}`:               true,
		`{"role":"user","content":"b" }`:              true,
		`{"role":"user","content":"b","name":"c"}`:    true,
		`{"role":"user","content":"b","x":1}`:         false,
		`{"role":"user","content":["b"]}`:             false,
		`{"role":"user","content":null}`:              false,
		`{"role":"user","content":7}`:                 false,
		`{"role":7,"content":"b"}`:                    false,
		`{"role":"user","content":{"role":"user"}}`:   false,
		`{"role": "user","content":"b"}`:              true,
		`{"content":"b","role":"user"}`:               true,
		`{"role":"system","content":"\u00e9\n\"}"}`:   true,
		`{"role":"user","content":"\n\"}{","name":2}`: false,
	} {
		b := scanned(t, `{"messages":[{"role":"user","content":"a"},`+second+`,{"role":"user","content":"c"}]}`)
		if len(b.Messages) != 3 || !b.Messages[0].Plain || !b.Messages[2].Plain {
			t.Fatalf("%s: %+v", second, b.Messages)
		}
		if m := b.Messages[1]; m.Plain != plain || string(b.Raw[m.From:m.To]) != second {
			t.Errorf("%s: %+v, want it to be plain: %t", second, m, plain)
		}
	}
	for _, bad := range []string{
		`{"role":"user","content":"b","role":"user"}`, `{"role":"user","content":"b","content":"c"}`, `{"role":"user","content":"b"`, `{"role":"user","content":"b`,
		`{"role":"user","content":"\x"}`, "{\"role\":\"user\",\"content\":\"\xff\"}", `{"role":"user","content":}`, `{"role":"user","content":`, `{"role":"user","content":"b"]`,
	} {
		if _, err := Scan([]byte(`{"messages":[{"role":"user","content":"a"},` + bad + `]}`)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestScan_ManyMessages: no more are listed than are allowed, and one.
func TestScan_ManyMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{7, 8, 9, 100, MaxMessages, MaxMessages + 1, MaxMessages + 2, 3 * MaxMessages} {
		for _, rest := range []string{"", `,"` + strings.Repeat("a", 1<<20) + `"`} {
			b := scanned(t, `{"messages":[`+strings.TrimSuffix(strings.Repeat("1,", n), ",")+rest+`]}`)
			want := n
			if rest != "" {
				want++
			}
			if got := len(b.Messages); got != min(want, MaxMessages+1) || cap(b.Messages) > 2*MaxMessages {
				t.Errorf("%d messages of %d, with room for %d", got, want, cap(b.Messages))
			}
		}
	}
}

func TestScan_RefusesDuplicates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body, key string
	}{
		"plain":         {`{"model":"a","model":"b"}`, "model"},
		"same value":    {`{"stream":true,"x":1,"stream":true}`, "stream"},
		"escaped":       {`{"model":"a","mod\u0065l":"b"}`, "model"},
		"escaped first": {`{"\u006dodel":"a","model":"b"}`, "model"},
		"both escaped":  {`{"a\/b":1,"a\u002fb":2}`, "a/b"},
		"upper hex":     {`{"\u00E9":1,"\u00e9":2}`, "é"},
		"surrogates":    {`{"🎉":1,"\ud83c\udf89":2}`, "🎉"},
		"empty name":    {`{"":1,"":2}`, ""},
		"quote in name": {`{"a\"b":1,"a\u0022b":2}`, `a"b`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Scan([]byte(tt.body))
			want := translate.Invalid("duplicate_field", tt.key, `"`+tt.key+`" is given twice in the request body.`)
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScan_Accepts(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty object":           `{}`,
		"space everywhere":       " \r\n\t{ \"a\" : [ 1 , { } , [ ] ] , \"b\" :\nnull } \n",
		"numbers":                `{"a":[0,-0,1,-1,10,0.5,-0.5,1e5,1E5,1e+5,1e-5,0e0,1.25E-10,1e999,123456789012345678901234567890]}`,
		"escapes":                `{"a":"\"\\\/\b\f\n\r\t\u0000\u00e9\uD83C\udf89"}`,
		"surrogates in names":    `{"\ud83c\udf89":1,"\uD83C\uDF88":2}`,
		"delete character":       "{\"a\":\"\x7f\"}",
		"not ASCII":              `{"日本":"🎉é"}`,
		"line separators":        "{\"a\":\"\u2028\u2029\"}",
		"same name further in":   `{"a":{"a":{"a":1,"b":2},"b":[{"a":1},{"a":1}]},"b":{"a":3}}`,
		"names differ by case":   `{"model":1,"Model":2}`,
		"names differ by space":  `{"model":1,"model ":2}`,
		"objects as deep":        nested(`{"a":`, "1", `}`, MaxDepth),
		"arrays as deep":         `{"a":` + nested(`[`, "", `]`, MaxDepth-1) + `}`,
		"as many fields":         manyFields(MaxFields),
		"many fields further in": `{"a":` + manyFields(MaxFields+1) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Scan([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(topLevel(t, []byte(body)), values(b)); diff != "" {
				t.Errorf("fields (-encoding/json +Scan):\n%s", diff)
			}
		})
	}
}

// TestScan_AnyByteInAString: strings are read eight bytes at a time, so a byte's place could matter.
func TestScan_AnyByteInAString(t *testing.T) {
	t.Parallel()
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("~", length))
				text[at] = byte(c)
				body := []byte(`{"a":"` + string(text) + `"}`)
				if _, err := Scan(body); (err == nil) != isWanted(t, body) {
					t.Fatalf("%q: %v", body, err)
				}
			}
		}
	}
}

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

func manyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":%d`, i, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// values are a body's fields as Scan found them.
func values(b *Body) map[string]string {
	all := map[string]string{}
	for i := range b.fields {
		key := string(b.fields[i].key)
		all[key] = string(b.Value(key))
	}
	return all
}

// topLevel is the fields of a JSON object as encoding/json finds them.
func topLevel(tb testing.TB, object []byte) map[string]string {
	tb.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(object, &raw); err != nil {
		tb.Fatalf("%v in %.200s", err, object)
	}
	all := map[string]string{}
	for k, v := range raw {
		all[k] = string(v)
	}
	return all
}
