package jsonbody

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// texts are what messages consist of, as JSON.
var texts = map[string]string{
	"mixed":   "The quick brown fox jumps over the lazy dog, \\\"twice\\\" \\u2014 naïvely.\\n",
	"prose":   "The quick brown fox jumps over the lazy dog, and the dog sleeps on. It was a long day for both of them. ",
	"code":    code(),
	"Chinese": "敏捷的棕色狐狸跳过了懒狗，而那只狗继续睡觉。这一天对它们俩来说都很漫长。",
}

// code is the source of this package.
func code() string {
	var all []byte
	for _, name := range []string{"scanner.go", "edit.go", "fuzz_test.go"} {
		source, err := os.ReadFile(name)
		if err != nil {
			panic(err) // tests run in the package's folder
		}
		all = append(all, source...)
	}
	text := AppendString(nil, string(all))
	return string(text[1 : len(text)-1])
}

// request returns a chat request of about the given size, most of it text, as in real ones.
func request(text string, size int) []byte {
	const (
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
		body := request(texts["mixed"], size)
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

// BenchmarkScan_Texts measures Scan on what large requests consist of.
func BenchmarkScan_Texts(b *testing.B) {
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			body := request(text, 1<<20)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
