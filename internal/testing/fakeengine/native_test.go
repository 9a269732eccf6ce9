package fakeengine_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestNative_CompletionAndInfill(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Infill: true}, nil)
	for path, prompt := range map[string]string{"/completion": `"prompt":"Once upon"`, "/infill": `"input_prefix":"Once","input_suffix":"end"`} {
		_, body := r.ask(path, `{`+prompt+`,"n_predict":2,"n_probs":1,"stream":true,"return_progress":true,"response_fields":["stop","stop_type","timings"]}`)
		frames := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
		if len(frames) != 5 || !strings.Contains(frames[1], `"prompt_progress":`) || !strings.Contains(frames[2], `"content":"Hello"`) {
			t.Fatalf("%s: %s", path, body)
		}
		if !strings.Contains(frames[3], `"completion_probabilities":[{`) || strings.Contains(body, "[DONE]") {
			t.Errorf("%s: %s", path, body)
		}
		last := gjson.Parse(strings.TrimPrefix(frames[4], "data: "))
		if last.Get("stop_type").Str != "limit" || !last.Get("stop").Bool() || last.Get("content").Exists() || last.Get("timings.predicted_n").Int() != 2 {
			t.Errorf("%s: the last chunk is %s", path, last)
		}
	}
	_, body := r.ask("/completion", `{"prompt":"Once"}`)
	if gjson.Get(body, "content").Str != "Hello from the fake engine." || gjson.Get(body, "stop_type").Str != "eos" {
		t.Errorf("in one piece: %s", body)
	}
	if _, body := r.ask("/detokenize", `{"tokens":[1,2]}`); body != `{"content":"<1><2>"}` {
		t.Errorf("detokenize: %s", body)
	}
}

func TestNative_WhatAServerWasNotStartedFor(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil, "--embeddings", "-ub", "2")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/infill", `{"input_prefix":"a","input_suffix":"b"}`, 501, "Infill is not supported by this model"},
		{"/v1/rerank", `{"query":"a","documents":["b"]}`, 501, "Start it with `--reranking`"},
		{"/v1/embeddings", `{"input":["a","b c d"]}`, 500, "input (3 tokens) is too large to process. increase the physical batch size (current batch size: 2)"},
		{"/v1/embeddings", `{"input":[1,2,3]}`, 500, "input (3 tokens)"},
		{"/v1/embeddings", `{"input":[[1,2],[3]]}`, 200, `"index":1`},
	} {
		if status, body := r.ask(c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
}

func TestRerank_MoreWordsOfTheQueryAreBetter(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil, "--reranking")
	_, body := r.ask("/v1/rerank", `{"query":"red river","documents":["blue sky","red river","red sun"]}`)
	if order := gjson.Get(body, "results.#.index").Raw; order != "[1,2,0]" {
		t.Errorf("%s", body)
	}
}
