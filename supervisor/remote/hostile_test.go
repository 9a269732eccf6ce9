package remote

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDiscover_OfHostileNames(t *testing.T) {
	t.Parallel()
	const list = `{"data":[{"id":"../"},{"id":".."},{"id":"a/../b"},{"id":"a//b"},{"id":""},{"id":"/"},{"id":"red\u001b[31m"},{"id":"nul\u0000"},
		{"id":"back\u202eward"},{"id":"wide\u200b"},{"id":"line\nbreak"},{"id":"%s"},{"id":"null"},{"id":"twice"},{"id":"TWICE"},{"id":"größe"}]}`
	found, err := shapes(t, map[string]string{"/v1/models": fmt.Sprintf(list, strings.Repeat("x", 300))}).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range found.Models {
		keys = append(keys, m.Key)
		if !m.Changed.Equal(time.Unix(0, 0)) {
			t.Errorf("%s was changed at %s", m.Key, m.Changed)
		}
	}
	if want := []string{"größe", "null", "twice"}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, not %q", keys, want)
	}
}

func TestDiscover_OfUnusualNumbers(t *testing.T) {
	t.Parallel()
	found, err := shapes(t, map[string]string{
		"/v1/models": `{"data":[{"id":"a","owned_by":"vllm","created":1.7e9,"max_model_len":4096.0},{"id":"b","created":"soon","max_model_len":-5},{"id":"c","max_model_len":1e300}]}`,
		"/version":   "{\"version\":\"1\x1b[31m\"}",
	}).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := &found.Models[0], &found.Models[1], &found.Models[2]
	if a.Context != 4096 || a.Changed.Unix() != 1_700_000_000 || b.Context != 0 || c.Context != 0 {
		t.Errorf("the models are %+v", found.Models)
	}
}

func TestDiscover_OfWhatNobodyCanUse(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"id":"%d"},`, mostModels+1)
	var numbers []any
	for i := range mostModels + 1 {
		numbers = append(numbers, i)
	}
	for body, want := range map[string]string{
		`{"data":[` + strings.TrimSuffix(fmt.Sprintf(many, numbers...), ",") + `]}`: "it has 2001 models, more than 2000: choose some of them with the option models",
		`{"data":{}}`:         "its answer has an unexpected form: data is of the type object",
		`{"data":[{"id":5}]}`: "its answer has an unexpected form: data.id is of the type number",
		`<html>`:              errNotJSON.Error(),
	} {
		_, err := shapes(t, map[string]string{"/v1/models": body}).Discover(t.Context())
		if err == nil || err.Error() != want {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}

func TestDiscover_OfOllamasLatest(t *testing.T) {
	t.Parallel()
	s := shapes(t, map[string]string{"/api/tags": `{"models":[{"name":"qwen3:latest"},{"name":"qwen3:4b"}]}`})
	s.config.Kind = KindOllama
	found, err := s.Discover(t.Context())
	if err != nil || len(found.Models) != 2 || found.Models[0].Key != "qwen3" || found.Models[0].ID != "qwen3" {
		t.Errorf("%+v, %v", found.Models, err)
	}
}

func TestDiscover_OfACircle(t *testing.T) {
	t.Parallel()
	far := map[string]string{
		"/api/v1/models":   `{"models":[{"key":"its/own"},{"key":"far/away","via":["third"]},{"key":"our/own","via":["third","self"]}]}`,
		"/api/v1/health":   `{"status":"ok"}`,
		"/api/v1/settings": `{"version":"1","id":"other"}`,
	}
	found, err := shapes(t, far).Discover(t.Context())
	if err != nil || len(found.Models) != 2 {
		t.Fatalf("%+v, %v", found.Models, err)
	}
	if via := found.Models[0].Via; found.Models[0].Key != "far/away" || !slices.Equal(via, []string{"other", "third"}) {
		t.Errorf("%+v", found.Models[0])
	}
	if via := found.Models[1].Via; !slices.Equal(via, []string{"other"}) {
		t.Errorf("%+v", found.Models[1])
	}
	far["/api/v1/settings"] = `{"id":"self"}`
	if _, err = shapes(t, far).Discover(t.Context()); err == nil || err.Error() != "it is this server itself: delete the remote" {
		t.Errorf("this server itself: %v", err)
	}
}
