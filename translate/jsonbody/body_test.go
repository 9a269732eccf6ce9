package jsonbody

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

func scanned(tb testing.TB, body string) *Body {
	tb.Helper()
	b, err := Scan([]byte(body))
	if err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return b
}

func TestBody_Value(t *testing.T) {
	t.Parallel()
	b := scanned(t, ` { "a" : [1, 2 ] ,"b":"x,\"}" , "mod\u0065l" :null, "":{} } `)
	want := map[string]string{"a": `[1, 2 ]`, "b": `"x,\"}"`, "model": `null`, "": `{}`}
	if diff := cmp.Diff(want, values(b)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for _, absent := range []string{"x", "A", `mod\u0065l`, "a.0", "@this", "#"} {
		if v := b.Value(absent); v != nil {
			t.Errorf("%q is %s", absent, v)
		}
		if b.Get(absent).Exists() {
			t.Errorf("%q exists", absent)
		}
	}
}

// The result of Get stays valid when the buffer of the request is reused.
func TestBody_GetCopies(t *testing.T) {
	t.Parallel()
	b := scanned(t, `{"model":"tiny"}`)
	model := b.Fields().Text("model")
	scribble(b.Raw)
	if model != "tiny" {
		t.Errorf("after the buffer was overwritten: %q", model)
	}
}

func TestBody_String(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"tiny"`: "tiny", `""`: "", `null`: "", `"a\u0062\n\"c\""`: "ab\n\"c\"", `"\ud83c\udf89"`: "🎉",
	} {
		r := scanned(t, `{"model":`+value+`}`).Fields()
		got, err := r.Text("model"), r.Err
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", value, got, err)
		}
	}
	if r := scanned(t, `{}`).Fields(); r.Text("model") != "" || r.Err != nil {
		t.Errorf("absent: %v", r.Err)
	}
	for value, typ := range map[string]string{
		`1`: "the number 1", `1e999`: "the number 1e999", `true`: "a boolean", `false`: "a boolean", `["a"]`: "an array", `{"a":1}`: "an object",
	} {
		r := scanned(t, `{"model":`+value+`}`).Fields()
		r.Text("model")
		if diff := cmp.Diff(translate.Invalid("invalid_type", "model", `"model" must be a string, not `+typ+`.`), r.Err); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestBody_Bool(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{`true`: true, `false`: false, `null`: false} {
		r := scanned(t, `{"stream":`+value+`}`).Fields()
		got, err := r.Bool("stream"), r.Err
		if err != nil || got != want {
			t.Errorf("%s: %t, %v", value, got, err)
		}
	}
	if r := scanned(t, `{}`).Fields(); r.Bool("stream") || r.MaybeBool("stream") != nil || r.Err != nil {
		t.Errorf("absent: %v", r.Err)
	}
	for value, typ := range map[string]string{
		`1`: "the number 1", `0`: "the number 0", `"true"`: "a string", `[]`: "an array", `{}`: "an object",
	} {
		r := scanned(t, `{"stream":`+value+`}`).Fields()
		r.MaybeBool("stream")
		if diff := cmp.Diff(translate.Invalid("invalid_type", "stream", `"stream" must be a boolean, not `+typ+`.`), r.Err); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestBody_Int(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		`0`: 0, `-0`: 0, `4096`: 4096, `-1`: -1, `4096.0`: 4096, `4.096e3`: 4096, `1e3`: 1000, `9007199254740992`: 1 << 53, `-9007199254740992`: -1 << 53,
	} {
		r := scanned(t, `{"n":`+value+`}`).Fields()
		got, given := r.Int("n")
		if r.Err != nil || !given || got != want {
			t.Errorf("%s: %d, given %t, %v", value, got, given, r.Err)
		}
	}
	for _, body := range []string{`{}`, `{"n":null}`} {
		r := scanned(t, body).Fields()
		if got, given := r.Int("n"); r.Err != nil || given || got != 0 {
			t.Errorf("%s: %d, given %t, %v", body, got, given, r.Err)
		}
	}
	for value, typ := range map[string]string{
		`1.5`: "the number 1.5", `1e-3`: "the number 1e-3", `1e30`: "the number 1e30", `-1e30`: "the number -1e30",
		`1e999`: "the number 1e999", `-1e999`: "the number -1e999",
		`9223372036854775807`: "the number 9223372036854775807", `9223372036854775808`: "the number 9223372036854775808",
		`-9223372036854775808`: "the number -9223372036854775808", `18446744073709551616`: "the number 18446744073709551616",
		`"4096"`: "a string", `true`: "a boolean", `[4096]`: "an array", `{}`: "an object",
	} {
		r := scanned(t, `{"n":`+value+`}`).Fields()
		got, _ := r.Int("n")
		if diff := cmp.Diff(translate.Invalid("invalid_type", "n", `"n" must be a whole number, not `+typ+`.`), r.Err); diff != "" || got != 0 {
			t.Errorf("%s: %d (-want +got):\n%s", value, got, diff)
		}
	}
}

func TestEdit_Apply(t *testing.T) {
	t.Parallel()
	set := func(e *Edit) { e.Set("stream", "true") }
	remove := func(e *Edit) { e.Remove("ttl") }
	both := func(e *Edit) { set(e); remove(e) }
	tests := map[string]struct {
		body string
		edit func(*Edit)
		want string
	}{
		"nothing":         {`{"a":1}`, func(*Edit) {}, `{"a":1}`},
		"nothing of none": {` { } `, func(*Edit) {}, `{}`},
		"added to none":   {`{}`, set, `{"stream":true}`},
		"added":           {`{"a":1}`, set, `{"a":1,"stream":true}`},
		"replaced":        {`{"stream":false,"a":1}`, set, `{"stream":true,"a":1}`},
		"replaced, long":  {`{"a":1,"stream": {"a":[false]} }`, set, `{"a":1,"stream": true}`},
		"replaced by name": {
			`{"str\u0065am":false}`, set, `{"str\u0065am":true}`,
		},
		"removed alone":    {`{"ttl":1}`, remove, `{}`},
		"removed first":    {`{"ttl":1,"a":1,"b":2}`, remove, `{"a":1,"b":2}`},
		"removed between":  {`{"a":1,"ttl":{"x":[1]},"b":2}`, remove, `{"a":1,"b":2}`},
		"removed last":     {`{"a":1,"b":2,"ttl":1}`, remove, `{"a":1,"b":2}`},
		"removed by name":  {`{"\u0074tl":1,"b":2}`, remove, `{"b":2}`},
		"not there":        {`{"a":1}`, remove, `{"a":1}`},
		"only further in":  {`{"a":{"ttl":1,"stream":false}}`, both, `{"a":{"ttl":1,"stream":false},"stream":true}`},
		"both":             {`{"ttl":1,"stream":false}`, both, `{"stream":true}`},
		"removed, added":   {`{"ttl":1}`, both, `{"stream":true}`},
		"untouched values": {`{"x": 1.50 ,"y":"\u00e9\/" ,"z":[ 1,2 ],"ttl":1}`, remove, `{"x": 1.50 ,"y":"\u00e9\/" ,"z":[ 1,2 ]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := scanned(t, tt.body)
			var e Edit
			tt.edit(&e)
			got := e.Apply(b)
			if pieces := bytes.Join(e.Pieces(b), nil); !jsonEqual(t, pieces, got) {
				t.Errorf("in pieces: %s, in one: %s", pieces, got)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if string(b.Raw) != tt.body {
				t.Errorf("the body itself was changed: %s", b.Raw)
			}
		})
	}
}

func TestEdit_Only(t *testing.T) {
	t.Parallel()
	b := scanned(t, `{"a":1,"b":null,"c":2,"d":3,"e":4,"f":null}`)
	var e Edit
	e.Set("c", "5")
	e.Set("d", "6")
	e.Set("new", "7")
	e.Set("unknown", "8")
	e.Remove("e")
	only := e.Only(map[string]bool{"a": true, "b": true, "c": true, "e": true, "new": true})
	const want = `{"a":1,"c":5,"new":7}`
	if diff := cmp.Diff(want, string(only.Apply(b))); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, string(bytes.Join(only.Pieces(b), nil))); diff != "" {
		t.Errorf("Pieces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "d", "f"}, only.Dropped(b)); diff != "" {
		t.Errorf("Dropped (-want +got):\n%s", diff)
	}
}

// jsonEqual reports whether two JSON texts differ only in white space between tokens.
func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y bytes.Buffer
	if err := json.Compact(&x, a); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Compact(&y, b); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// scribble overwrites what was fed, as a reader does with its buffer.
func scribble(p []byte) {
	for i := range p {
		p[i] = '#'
	}
}

// TestEdit_LargeValueIsNotWrittenTo: what follows a large value in memory is left alone, whoever appends to what the edit gives out.
func TestEdit_LargeValueIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	b := scanned(t, `{"a":1}`)
	memory := []byte(`[1,2]!`)
	var e Edit
	e.SetLarge("a", memory[:5])
	_ = append(e.Value(b, "a"), '?')
	if got := string(e.Apply(b)); got != `{"a":[1,2]}` || string(memory) != `[1,2]!` {
		t.Errorf("%s, and %s in memory", got, memory)
	}
}
