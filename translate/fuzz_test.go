package translate_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// bodies are seeds for fuzzing requests.
var bodies = []string{
	``, `{}`, ` { } `, `[]`, `null`, `{"model":"m","stream":false,"ttl":300,"messages":[{"role":"user","content":"Hello"}]}`,
	`{"model":"a","mod\u0065l":"b"}`, `{"\ud800\u0041":1,"\ud800\u0042":2}`, `{"a":01}`, `{"a":1e999}`, `{"a":-}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\xff\"}",
	`{"messages":[{"role":"user","content":[{"type":"text","text":"é🎉"},{"type":"image_url","image_url":{"url":"data:,"}}]}],"n":1,"temperature":0.70}`,
	`{"a":[[[[[[]]]]]],"b":{"c":{"d":[true,false,null,-1.5e+3]}}}`,
	testkit.Nested(`{"a":`, "1", `}`, jsonbody.MaxDepth), testkit.Nested(`{"a":`, "1", `}`, jsonbody.MaxDepth+1), testkit.ManyFields(jsonbody.MaxFields), testkit.ManyFields(jsonbody.MaxFields + 1),
}

// FuzzDecoder checks that events follow the grammar and don't depend on the reads.
func FuzzDecoder(f *testing.F) {
	for i, tr := range transcripts(f) {
		f.Add(tr.upstream, uint64(i))
	}
	f.Fuzz(func(t *testing.T, upstream []byte, seed uint64) {
		events := decode(t, upstream)
		wantGrammar(t, events)
		for _, pieces := range [][][]byte{single(upstream), randomCuts(upstream, seed)} {
			if diff := cmp.Diff(events, decode(t, pieces...)); diff != "" {
				t.Fatalf("(-whole +cut):\n%s", diff)
			}
		}
		if body := gather(openai.ReasoningPlain, events); len(body) > 0 && !json.Valid(body) {
			t.Fatalf("the body is not JSON: %s", body)
		}
	})
}

// FuzzRewriter checks that the client's stream doesn't depend on the reads, and that a fault ends it.
func FuzzRewriter(f *testing.F) {
	for i, tr := range transcripts(f) {
		f.Add(tr.upstream, uint64(i), i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, upstream []byte, seed uint64, usage, content bool) {
		opts := rewriteOptions{IncludeUsage: usage}
		if content {
			opts.ReasoningField = openai.ReasoningContent
		}
		stream, fault := rewrite(opts, upstream)
		for _, pieces := range [][][]byte{single(upstream), randomCuts(upstream, seed)} {
			got, cutFault := rewrite(opts, pieces...)
			if diff := cmp.Diff(string(stream), string(got)) + cmp.Diff(fault, cutFault); diff != "" {
				t.Fatalf("(-whole +cut):\n%s", diff)
			}
		}
		if utf8.Valid(upstream) {
			dataOf(t, stream)
		}
		end := jsonbody.AppendFrame(nil, jsonbody.DoneMark)
		if fault != nil {
			end = jsonbody.AppendFrame(nil, openai.Errors{}.AppendError(nil, fault, ""))
		}
		if !bytes.HasSuffix(stream, end) {
			t.Fatalf("fault %v, but the stream ends in %q", fault, stream[max(0, len(stream)-200):])
		}
	})
}
