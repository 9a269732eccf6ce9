package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
)

// withField are the endpoints of all dialects that have a field, by the name that it has there.
func withField(name string) map[*family]string {
	found := map[*family]string{}
	for _, f := range slices.Concat(families, ollamaFamilies) {
		for _, field := range f.fields {
			if field.name == name || field.name == "options."+name {
				found[&f] = field.name
			}
		}
	}
	return found
}

// engines returns what the engine gets of a request; nil if it is refused.
func (s *server) engines(f *family, more string) *gjson.Result {
	s.t.Helper()
	before := len(s.fake.Events())
	if got := s.do("POST", f.path, "{"+f.base+","+more+"}"); got.status != http.StatusOK {
		s.t.Errorf("%s with %s: %d %s", f.path, more, got.status, got.body)
		return nil
	}
	for _, ev := range s.fake.Events()[before:] {
		if strings.HasSuffix(ev.Path, "completions") || strings.HasSuffix(ev.Path, "completion") {
			body := gjson.Parse(ev.Body)
			return &body
		}
	}
	s.t.Errorf("%s with %s: the engine gets nothing", f.path, more)
	return nil
}

// TestDialects_TakeTheSameSeeds: clients send any number of 64 bits, with a sign or without.
func TestDialects_TakeTheSameSeeds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 1) })
	found := withField("seed")
	if len(found) < 7 {
		t.Fatalf("only %d endpoints have a seed", len(found))
	}
	for f, name := range found {
		for given, want := range map[string]string{
			"7": "7", "-2": "4294967293", "9007199254740993": "2097153",
			"9223372036854775807": "2147483647", "-9223372036854775808": "2147483647", "18446744073709551614": "4294967294",
		} {
			object, member, ok := strings.Cut(name, ".")
			more := `"` + name + `":` + given
			if ok {
				more = `"` + object + `":{"` + member + `":` + given + `}`
			}
			if body := s.engines(f, more); body != nil && body.Get("seed").Raw != want {
				t.Errorf("%s with %s: the engine gets %s, want %s", f.path, more, body.Raw, want)
			}
		}
	}
}

// TestDialects_NoLogprobsOfNone: clients send the default of each field that they know.
func TestDialects_NoLogprobsOfNone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for f := range withField("top_logprobs") {
		for _, more := range []string{`"top_logprobs":0`, `"top_logprobs":0,"logprobs":false`, `"top_logprobs":null,"logprobs":null`} {
			if f.path == "/v1/responses" && strings.Contains(more, "logprobs\":f") {
				continue // has no such field
			}
			if body := s.engines(f, more); body != nil && (body.Get("logprobs").Bool() || body.Get("top_logprobs").Exists()) {
				t.Errorf("%s with %s: the engine gets %s", f.path, more, body.Raw)
			}
		}
	}
}

// TestDialects_TakeAByteOrderMark: some clients begin every text with one.
func TestDialects_TakeAByteOrderMark(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	for _, f := range slices.Concat(families, ollamaFamilies) {
		if got := s.do("POST", f.path, "\ufeff{"+f.base+"}"); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", f.path, got.status, got.body)
		}
	}
	if got := s.do("POST", "/v1/chat/completions", "\ufeff\ufeff{}"); got.status != http.StatusBadRequest || got.code() != "invalid_json" {
		t.Errorf("two of them: %d %s", got.status, got.body)
	}
}

// blindRequests have content in an earlier message that the shipped model can't take, and the place that an error names.
var blindRequests = []struct{ path, body, where, note string }{
	{"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,AAAA"}}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, "messages[0].content[1].image_url.url", "[image omitted: this model can't see images]"},
	{"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`, "messages[0].content[0]", "[document omitted:"},
	{"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, "messages[0].content[0]", "[audio omitted:"},
	{"/v1/messages", `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"a"}]}]}`, "messages.0.content.0.source", "[image omitted:"},
	{"/v1/messages", `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}]}`, "messages.0.content.0.source", "[document omitted:"},
	{"/v1/responses", `{"model":"tinychat","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,AAAA"}]}]}`, "input[0].content[0].image_url", "[image omitted:"},
	{"/v1/responses", `{"model":"tinychat","input":[{"role":"user","content":[{"type":"input_file","file_data":"AAAA"}]}]}`, "input[0].content[0]", "[document omitted:"},
	{"/v1/responses", `{"model":"tinychat","input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, "input[0].content[0]", "[audio omitted:"},
	{"/api/v1/chat", `{"model":"tinychat","input":[{"type":"audio","data_url":"data:,AAAA"}]}`, "input[0]", "[audio omitted:"},
	{"/api/v1/chat", `{"model":"tinychat","input":[{"type":"text","content":"a"},{"type":"image","data_url":"data:,AAAA"}]}`, "input[1]", "[image omitted:"},
	{"/api/chat", `{"model":"tinychat","stream":false,"messages":[{"role":"user","content":"a","images":["AAAA"]}]}`, "messages[0].images[0]", "[image omitted:"},
	{"/api/chat", `{"model":"tinychat","stream":false,"messages":[{"role":"user","content":"a","images":["` + testkit.Sound + `"]}]}`, "messages[0].images[0]", "[audio omitted:"},
	{"/api/generate", `{"model":"tinychat","stream":false,"prompt":"a","images":["AAAA"]}`, "images[0]", "[image omitted:"},
}

// TestDialects_OmitWhatTheModelCannotTake, with a note in its place, if the operator wants that, and otherwise say where it is.
func TestDialects_OmitWhatTheModelCannotTake(t *testing.T) {
	t.Parallel()
	refuses, omits := serve(t, nil), serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.OmitsUnseen = true })
	for _, r := range blindRequests {
		got := refuses.do("POST", r.path, r.body)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, r.where) || !strings.Contains(got.body, "unsupported_content omit") {
			t.Errorf("%s %s: %d %s", r.path, r.body, got.status, got.body)
		}
		before := len(omits.fake.Events())
		if got = omits.do("POST", r.path, r.body); got.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", r.path, r.body, got.status, got.body)
		}
		isReported := slices.ContainsFunc(omits.fake.Events()[before:], func(ev fakeengine.Event) bool {
			return strings.HasSuffix(ev.Path, "completions") && strings.Contains(ev.Body, r.note)
		})
		if !isReported {
			t.Errorf("%s: the model isn't told of %s", r.path, r.body)
		}
	}
}
