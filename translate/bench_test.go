package translate_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// stream is an answer of n chunks, a third of them thinking.
func stream(n int) [][]byte {
	const chunk = `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"%s":"%d"}}],"created":1795205498,"id":"chatcmpl-T5m4JGwrGJKOQ1zWV9g2rZiCmqp0ipn7","model":"lmcaddy/tinychat","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}` + "\n\n"
	var reads [][]byte
	for i := range n {
		field := "content"
		if i < n/3 {
			field = "reasoning_content"
		}
		reads = append(reads, fmt.Appendf(nil, chunk, field, i))
	}
	return append(reads, []byte(`data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}`+"\n\ndata: [DONE]\n\n"))
}

func length(reads [][]byte) int64 { return int64(len(bytes.Join(reads, nil))) }

// BenchmarkRewriter measures an answer of 1000 chunks, one to a read, against only copying it.
func BenchmarkRewriter(b *testing.B) {
	reads := stream(1000)
	buf := make([]byte, 0, 4096)
	b.Run("Rewriter", func(b *testing.B) {
		b.SetBytes(length(reads))
		b.ReportAllocs()
		for b.Loop() {
			r := newRewriter(&request.Chat{}, rewriteOptions{})
			for _, p := range reads {
				buf = r.Append(buf[:0], p)
			}
			if r.Fault() != nil {
				b.Fatal(r.Fault())
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(length(reads))
		b.ReportAllocs()
		for b.Loop() {
			for _, p := range reads {
				buf = append(buf[:0], p...)
			}
		}
	})
}

// BenchmarkDecoder measures the events of an answer of 1000 chunks, one to a read.
func BenchmarkDecoder(b *testing.B) {
	reads := stream(1000)
	b.SetBytes(length(reads))
	b.ReportAllocs()
	for b.Loop() {
		var last translate.Event
		emit := func(ev translate.Event) error {
			last = ev
			return nil
		}
		d := llamaserver.Wire{}.Decoder()
		for _, p := range reads {
			if err := d.Feed(p, emit); err != nil {
				b.Fatal(err)
			}
		}
		if last != (translate.Finish{Reason: translate.FinishStop}) {
			b.Fatalf("it ended with %v", last)
		}
	}
}
