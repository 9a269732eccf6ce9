package prefix

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func chain(key byte, messages ...string) Chain {
	m := New(Key(key))
	for _, s := range messages {
		m.Message([]byte(s))
	}
	return m.Chain()
}

func TestChain_Common(t *testing.T) {
	t.Parallel()
	long := string(bytes.Repeat([]byte("abcdefgh"), 3*blockSize/8))
	for name, tt := range map[string]struct {
		a, b Chain
		want int
	}{
		"the same":                      {chain(1, "a", "b"), chain(1, "a", "b"), 2},
		"one continues the other":       {chain(1, "a", "b"), chain(1, "a", "b", "c"), 2},
		"they part at once":             {chain(1, "a", "b"), chain(1, "x", "b"), 0},
		"a message is a part of one":    {chain(1, "ab"), chain(1, "abc"), 0},
		"messages are cut elsewhere":    {chain(1, "ab", "c"), chain(1, "a", "bc"), 0},
		"of different servers":          {chain(1, "a"), chain(2, "a"), 0},
		"they part in a long message":   {chain(1, long+"x"), chain(1, long+"y"), 3},
		"a block ends with a message":   {chain(1, long), chain(1, long, "y"), 4},
		"nothing":                       {nil, chain(1, "a"), 0},
		"an empty message is a message": {chain(1, "", "a"), chain(1, "a"), 0},
	} {
		if got := tt.a.Common(tt.b); got != tt.want {
			t.Errorf("%s: %d links, want %d", name, got, tt.want)
		}
		if got := tt.b.Common(tt.a); got != tt.want {
			t.Errorf("%s, the other way: %d links, want %d", name, got, tt.want)
		}
	}
}

func TestChain_Weight(t *testing.T) {
	t.Parallel()
	m := New(0)
	m.Message(make([]byte, blockSize+10))
	m.Opaque(make([]byte, 1000), 7)
	m.End()
	c := m.Chain()
	if len(c) != 3 || c.Weight(0) != 0 || c.Weight(1) != blockSize || c.Weight(2) != blockSize+10 || c.Weight(3) != blockSize+17 {
		t.Errorf("%+v", c)
	}
}

// An image in front of the rest of a message is a part of it.
func TestMaker_OpaqueCounts(t *testing.T) {
	t.Parallel()
	of := func(image string) Chain {
		m := New(0)
		m.Opaque([]byte(image), 7)
		m.Message([]byte("What is this?"))
		return m.Chain()
	}
	if of("a").Common(of("a")) != 1 || of("a").Common(of("b")) != 0 {
		t.Error("images aren't told apart")
	}
}

// Each part of a message counts, and so does its place. A part that goes on has the links of its whole blocks.
func TestMaker_Parts(t *testing.T) {
	t.Parallel()
	of := func(parts ...string) Chain {
		m := New(0)
		for _, part := range parts {
			m.Part([]byte(part))
		}
		m.End()
		return m.Chain()
	}
	if of("a", "b", "c").Common(of("a", "b", "c")) != 1 {
		t.Error("the same parts aren't the same message")
	}
	for _, other := range [][]string{{"a", "c", "b"}, {"b", "a", "c"}, {"a", "b"}, {"a", "b", "d"}, {"a", "", "c"}, {"x", "b", "c"}} {
		if of("a", "b", "c").Common(of(other...)) != 0 {
			t.Errorf("parts %q are taken for others", other)
		}
	}
	text := bytes.Repeat([]byte("0123456789"), blockSize/4)
	m := New(0)
	if m.Part(text); len(m.Chain()) != 2 || m.Chain().Common(chain(0, string(text)+"more")) != 2 {
		t.Errorf("a part that goes on has %d links", len(m.Chain()))
	}
}

// However long two chains are, the first link in which they differ is found.
func TestChain_CommonOfLongOnes(t *testing.T) {
	t.Parallel()
	messages := strings.Split("abcdefghijklmnopq", "")
	for i := range messages {
		changed := slices.Clone(messages)
		changed[i] = "changed"
		for n := i + 1; n <= len(messages); n++ {
			if got := chain(0, messages...).Common(chain(0, changed[:n]...)); got != i {
				t.Errorf("message %d of %d differs: %d in common", i, n, got)
			}
		}
	}
}

// BenchmarkMaker measures the chain of a long prompt, of short messages and of one.
func BenchmarkMaker(b *testing.B) {
	for name, size := range map[string]int{"short messages": 500, "one message": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			message := bytes.Repeat([]byte("a"), size)
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				m := New(0)
				m.Expect(1<<20/size, 1<<20)
				for range 1 << 20 / size {
					m.Message(message)
				}
			}
		})
	}
}

// FuzzChain reads chains as texts.
func FuzzChain(f *testing.F) {
	f.Add([]byte("AAAA"))
	f.Add([]byte("AAECAwQFBgcICQoLAAAAAQ=="))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, again Chain
		if c.UnmarshalText(text) != nil {
			return
		}
		written, err := c.MarshalText()
		if err != nil || again.UnmarshalText(written) != nil || !slices.Equal(c, again) {
			t.Errorf("%v became %v: %v", c, again, err)
		}
	})
}
