package prefix

import (
	"bytes"
	"testing"
)

func chain(key byte, messages ...string) Chain {
	m := New(Key{key})
	for _, s := range messages {
		_, _ = m.Write([]byte(s))
		m.End()
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
	m := New(Key{})
	_, _ = m.Write(make([]byte, blockSize+10))
	m.End()
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
		m := New(Key{0})
		m.Opaque([]byte(image), 7)
		m.Message([]byte("What is this?"))
		return m.Chain()
	}
	if of("a").Common(of("a")) != 1 || of("a").Common(of("b")) != 0 {
		t.Error("images aren't told apart")
	}
}

// How a message is cut into writes makes no difference.
func TestMaker_AnyCutting(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789"), blockSize/5)
	whole := chain(0, string(text))
	for _, step := range []int{1, 7, blockSize - 1, blockSize, blockSize + 1} {
		m := New(Key{0})
		for rest := text; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			_, _ = m.Write(rest[:min(step, len(rest))])
		}
		m.End()
		if got := m.Chain(); got.Common(whole) != len(whole) || len(got) != len(whole) {
			t.Errorf("in steps of %d: %d links of %d", step, got.Common(whole), len(whole))
		}
	}
	for _, at := range []int{0, 7, blockSize - 1, blockSize, blockSize + 1, len(text)} {
		m := New(Key{0})
		_, _ = m.Write(text[:at])
		m.Message(text[at:])
		if got := m.Chain(); got.Common(whole) != len(whole) || len(got) != len(whole) || got.Weight(len(got)) != len(text) {
			t.Errorf("a message from %d: %d links of %d", at, got.Common(whole), len(whole))
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
				m := New(Key{})
				m.Expect(1<<20/size, 1<<20)
				for range 1 << 20 / size {
					m.Message(message)
				}
			}
		})
	}
}
