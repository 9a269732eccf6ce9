package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// request is a chat request of about that many bytes, the greatest part of which is text, as in real ones.
func request(size int) []byte {
	const (
		text    = "The quick brown fox jumps over the lazy dog, \\\"twice\\\" \\u2014 naïvely.\\n"
		message = `{"role":"user","content":"%s"},`
		tool    = `{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`
	)
	var messages strings.Builder
	for messages.Len() < size-500 {
		lines := min(1+messages.Len()/len(text), 16)
		fmt.Fprintf(&messages, message, strings.Repeat(text, lines))
	}
	return []byte(`{"model":"lmcaddy/tinychat","stream":true,"temperature":0.7,"max_tokens":256,"messages":[` +
		strings.TrimSuffix(messages.String(), ",") + `],"tools":[` + tool + `],"stop":["\n\n"],"seed":42}`)
}

// BenchmarkScan measures Scan against two that only validate.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		body := request(size)
		run := func(name string, validate func([]byte) bool) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if !validate(body) {
						b.Fatal("the body is refused")
					}
				}
			})
		}
		run("Scan", func(p []byte) bool { _, err := Scan(p); return err == nil })
		run("gjson.ValidBytes", gjson.ValidBytes)
		run("json.Valid", json.Valid)
	}
}

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
			r := LlamaServer{}.Rewriter(&Chat{}, RewriteOptions{})
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
		var last Event
		emit := func(ev Event) error {
			last = ev
			return nil
		}
		d := LlamaServer{}.Decoder(&Chat{})
		for _, p := range reads {
			if err := d.Feed(p, emit); err != nil {
				b.Fatal(err)
			}
		}
		if last != (Finish{FinishStop}) {
			b.Fatalf("it ended with %v", last)
		}
	}
}
