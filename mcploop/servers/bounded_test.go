package servers

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func tooLong(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32098,"message":"a message is longer than 4 MiB"}}`
}

func TestLongMessage(t *testing.T) {
	t.Parallel()
	padding := `"` + strings.Repeat(`x\"id\":1}`, endBytes) + `"`
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"id":8,"a":PADDING}}`:                "7",
		`{"result":{"id":8,"a":["{","}",PADDING]}, "id" : 12 ,"jsonrpc":"2.0"}`: "12",
		`{"result":{"a":PADDING},"jsonrpc":"2.0","id":3}`:                       "3",
		`{ "id": 5, "jsonrpc": "2.0", "result": PADDING}` + "\n":                "5",
		`{"jsonrpc":"2.0","error":{"message":PADDING},"id":6}`:                  "6",
		`{"id":null,"result":PADDING}`:                                          "",
		`{"result":{"a":PADDING,"id":1}}`:                                       "",
		`{"id":{"a":1},"result":PADDING}`:                                       "",
		`{"id":1,"method":"ping","params":PADDING}`:                             "",
		`[{"id":1,"result":PADDING}]`:                                           "",
		`nothing "id":1 PADDING`:                                                "",
		`{"result":PADDING`:                                                     "",
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			message := strings.Replace(message, "PADDING", padding, 1)
			for _, size := range []int{1, 7, endBytes, len(message)} {
				m := new(longMessage)
				for part := range slices.Chunk([]byte(message), size) {
					m.add(part)
				}
				got := string(m.answer())
				if want == "" && got != "" || want != "" && got != tooLong(want) {
					t.Fatalf("in pieces of %d bytes the answer is %q", size, got)
				}
			}
		})
	}
}

func TestEventBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"an event":            {"event: message\nid: 1\ndata: {}\n\n", "event: message\nid: 1\ndata: {}\n\n"},
		"lines of data":       {"data: {\ndata:   \"a\":1\ndata:}\n\n", "data: {   \"a\":1 }\n\n"},
		"carriage returns":    {"event: x\r\ndata: {}\r\n\r\n", "event: x\ndata: {}\n\n"},
		"comments":            {": hello\n\n:\n\ndata: {}\n\n", "data: {}\n\n"},
		"an id alone":         {"id: 4\nretry: 100\n\n", "id: 4\nretry: 100\n\n"},
		"the end":             {"data: {}", "data: {}\n\n"},
		"other fields":        {"x: y\ndata\ndata: 1\n\n", "data: 1\n\n"},
		"a long field":        {"id: " + strings.Repeat("x", maxField) + "\ndata: 1\n\n", "data: 1\n\n"},
		"an event after that": {"event: " + strings.Repeat("x", 3*readSize) + "\ndata: 1\n\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
				n := new(note)
				got, err := io.ReadAll(newEventBody(io.NopCloser(in), newBudget(func() {}), n, false))
				if err != nil || n.failed() != nil || string(got) != test.want {
					t.Errorf("got %q, %v, %v", got, err, n.failed())
				}
			}
		})
	}
}

func TestEventBody_TooLong(t *testing.T) {
	t.Parallel()
	long := `data: {"result":{"a":"` + strings.Repeat("x", maxMessage) + "\"},\ndata: \"id\":3}\n\ndata: after\n\n"
	n := new(note)
	_, err := io.ReadAll(newEventBody(io.NopCloser(strings.NewReader(long)), newBudget(func() {}), n, false))
	if !errors.Is(err, errTooLong) || !errors.Is(n.failed(), errTooLong) {
		t.Errorf("the answer to one request fails with %v, %v", err, n.failed())
	}
	got, err := io.ReadAll(newEventBody(io.NopCloser(strings.NewReader(long)), newBudget(func() {}), nil, true))
	if want := "data: " + tooLong("3") + "\n\ndata: after\n\n"; err != nil || string(got) != want {
		t.Errorf("a stream of many gives %q, %v", got, err)
	}
	exact := "data: " + strings.Repeat("x", maxMessage) + "\n\n"
	if got, err := io.ReadAll(newEventBody(io.NopCloser(strings.NewReader(exact)), newBudget(func() {}), nil, false)); err != nil || string(got) != exact {
		t.Errorf("the longest event fails with %v", err)
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	exact := strings.Repeat("y", maxMessage-1) + "\n"
	in := "{}\n" + `{"id":9,"result":"` + strings.Repeat("x", maxMessage) + "\"}\n" + strings.Repeat("z", maxMessage) + "z\n" + exact + "cut off"
	var end error
	got, err := io.ReadAll(newLineReader(strings.NewReader(in), newBudget(func() {}), func(err error) { end = err }))
	if want := "{}\n" + tooLong("9") + "\n" + exact; err != nil || string(got) != want {
		t.Errorf("got %d bytes, %v; want %d bytes", len(got), err, len(want))
	}
	if !errors.Is(end, io.EOF) {
		t.Errorf("it ended with %v", end)
	}
}

// endless is a reader that repeats a text.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func TestBudget_EndsWhatNeverEnds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "\n", "data: x\n\n", ": x\n", "{}\n"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var end error
			for name, reader := range map[string]func(*budget) io.Reader{
				"lines":  func(b *budget) io.Reader { return newLineReader(endless(text), b, func(err error) { end = err }) },
				"events": func(b *budget) io.Reader { return newEventBody(io.NopCloser(endless(text)), b, nil, true) },
			} {
				spent := false
				b := newBudget(func() { spent = true })
				b.left = 2 * maxMessage
				_, err := io.Copy(io.Discard, reader(b))
				if name == "lines" {
					err = end
				}
				if !errors.Is(err, errFlood) || !spent {
					t.Errorf("%s: %v, %v", name, err, spent)
				}
			}
		})
	}
}

func TestBudget_CallsRefillIt(t *testing.T) {
	t.Parallel()
	b := newBudget(func() {})
	for range 10 {
		done := b.begin()
		if err := b.spend(idleBudget + callBudget); err != nil {
			t.Fatal(err)
		}
		done()
	}
	first, second := b.begin(), b.begin()
	if err := b.spend(idleBudget + 2*callBudget); err != nil {
		t.Fatal(err)
	}
	if err := b.spend(1); !errors.Is(err, errFlood) {
		t.Fatal(err)
	}
	first()
	second()
	if err := b.spend(idleBudget); err != nil {
		t.Fatal(err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`1`: 0, `{}`: 1, `{"a":[{"b":1}],"c":{}}`: 3, `["[[","\"[["]`: 1, `"\\"`: 0, `["\\",[1]]`: 2} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("the depth of %s is %d, want %d", text, got, want)
		}
	}
}
