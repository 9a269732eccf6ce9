package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

const (
	moeModel   = "lmcaddy/tinymoe"
	draftModel = "lmcaddy/tinydraft"
)

func TestLoad_EveryFieldIsApplied(t *testing.T) {
	t.Parallel()
	h := withOthers(harness.NewHome(t))
	h.AddModel(moeModel, filepath.Base(moeModel)+"-f16.gguf", shippedFile(t, moeModel))
	s := harness.Start(h, harness.Config{})
	for name, c := range map[string]struct {
		request harness.Fields
		config  string   // the expected load_config
		args    []string // arguments that the engine must get
		none    []string // arguments that it must not get
	}{
		"nothing asked for": {
			request: harness.Fields{"model": harness.Model},
			config:  `{"context_length":8192,"eval_batch_size":2048,"flash_attention":true,"offload_kv_cache_to_gpu":true}`,
			none:    []string{"-fa", "-b", "--no-kv-offload", "--override-kv"},
		},
		"all": {
			request: harness.Fields{"model": harness.Model, "context_length": 1000, "eval_batch_size": 128, "flash_attention": false, "offload_kv_cache_to_gpu": false},
			config:  `{"context_length":1024,"eval_batch_size":128,"flash_attention":false,"offload_kv_cache_to_gpu":false}`,
			args:    []string{"-c 4096", "-np 4", "-b 128", "-fa off", "--no-kv-offload"},
		},
		"experts, and a batch of one token": {
			request: harness.Fields{"model": moeModel, "num_experts": 5, "context_length": 512, "eval_batch_size": 1},
			config:  `{"context_length":512,"eval_batch_size":2,"flash_attention":true,"num_experts":5,"offload_kv_cache_to_gpu":true}`,
			args:    []string{"-b 2", "--override-kv llama.expert_used_count=int:5"},
		},
		"the model's own experts": {
			request: harness.Fields{"model": moeModel, "context_length": 512},
			config:  `{"context_length":512,"eval_batch_size":2048,"flash_attention":true,"num_experts":2,"offload_kv_cache_to_gpu":true}`,
		},
		"experts of a model without": {
			request: harness.Fields{"model": harness.Model, "num_experts": 5, "context_length": 512},
			config:  `{"context_length":512,"eval_batch_size":2048,"flash_attention":true,"offload_kv_cache_to_gpu":true}`,
			none:    []string{"--override-kv"},
		},
		"an embedding model": {
			request: harness.Fields{"model": embedModel, "eval_batch_size": 64, "flash_attention": true, "num_experts": 3, "offload_kv_cache_to_gpu": false},
			config:  `{"context_length":512}`,
			args:    []string{"--embeddings", "-b 512", "-ub 512"},
			none:    []string{"--no-kv-offload"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			reply := s.Post(harness.LoadPath, c.request.With("echo_load_config", true)).Want(t, http.StatusOK)
			if diff := cmp.Diff(parsed(c.config), reply.Get("load_config").Value()); diff != "" {
				t.Errorf("load_config (-want +got):\n%s", diff)
			}
			id := reply.Get("instance_id").Str
			listed := s.Get("/api/v1/models").Get(`models.#.loaded_instances|@flatten|#(id=="` + id + `").config`)
			if diff := cmp.Diff(parsed(c.config), listed.Value()); diff != "" {
				t.Errorf("the listed configuration (-want +got):\n%s", diff)
			}
			line := strings.Join(s.Engine().Args, " ")
			for _, part := range c.args {
				if !strings.Contains(line, part) {
					t.Errorf("arguments %q lack %q", line, part)
				}
			}
			for _, part := range c.none {
				if strings.Contains(line, " "+part+" ") {
					t.Errorf("arguments %q have %q", line, part)
				}
			}
			s.Post(harness.UnloadPath, harness.Fields{"instance_id": id}).Want(t, http.StatusOK)
			if engines := s.Engines(); len(engines) > 0 {
				t.Errorf("unloaded, but running: %v", engines)
			}
		})
	}
}

func parsed(s string) any { return gjson.Parse(s).Value() }

func TestLoad_BadFieldsAreRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.AddModel(moeModel, filepath.Base(moeModel)+"-f16.gguf", shippedFile(t, moeModel))
	s := harness.Start(h, harness.Config{})
	for field, value := range map[string]any{"num_experts": 9, "context_length": 0, "eval_batch_size": -1, "flash_attention": "yes", "offload_kv_cache_to_gpu": 1} {
		refused := s.Post(harness.LoadPath, harness.Fields{"model": moeModel, field: value}).Want(t, http.StatusBadRequest)
		if refused.Get("error.param").Str != field || refused.Get("error.type").Str != "invalid_request" {
			t.Errorf("%s: %s", field, refused.Body)
		}
	}
	if engines := s.Engines(); len(engines) > 0 {
		t.Errorf("an engine was started: %v", engines)
	}
}

func TestLoad_ASecondOneIsASecondInstance(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for _, want := range []string{harness.Model, harness.Model + ":2"} {
		if id := s.Post(harness.LoadPath, harness.Fields{"model": harness.Model, "context_length": 512}).Want(t, http.StatusOK).Get("instance_id").Str; id != want {
			t.Errorf("instance %q, want %q", id, want)
		}
	}
	if n := len(s.Engines()); n != 2 {
		t.Errorf("%d engines run", n)
	}
	reply := s.Post(harness.ChatPath, harness.Ask(capital).With("model", harness.Model+":2")).Want(t, http.StatusOK)
	if reply.Get("model").Str != harness.Model+":2" {
		t.Errorf("answered by %s", reply.Get("model").Str)
	}
}

func TestDraft_IsAnInstanceOfItsOwn(t *testing.T) {
	t.Parallel()
	h := withOthers(harness.NewHome(t))
	h.AddModel(draftModel, filepath.Base(draftModel)+"-f16.gguf", shippedFile(t, draftModel))
	s := harness.Start(h, harness.Config{})
	s.Chat(harness.Ask(capital))
	plain := s.Engine()
	const path = "/api/v0/chat/completions"
	reply := s.Post(path, harness.Ask(capital).With("draft_model", draftModel)).Want(t, http.StatusOK)
	stats := reply.Get("stats")
	if stats.Get("draft_model").Str != draftModel || stats.Get("accepted_draft_tokens_count").Int() < 1 {
		t.Errorf("stats %s", stats.Raw)
	}
	if n := len(s.Engines()); n != 2 || !plain.Alive() {
		t.Errorf("%d engines run", n)
	}
	for _, again := range []harness.Fields{harness.Ask(capital), harness.Ask(capital).With("draft_model", "tinydraft")} {
		s.Post(path, again).Want(t, http.StatusOK)
	}
	if n := len(s.Engines()); n != 2 {
		t.Errorf("%d engines run", n)
	}
	refused := s.Post(path, harness.Ask(capital).With("draft_model", moeModel+"x")).Want(t, http.StatusNotFound)
	if refused.Get("error.type").Str != "model_not_found" {
		t.Errorf("an unknown draft model: %s", refused.Body)
	}
	refused = s.Post(path, harness.Ask(capital).With("draft_model", embedModel)).Want(t, http.StatusBadRequest)
	if refused.Get("error.param").Str != "draft_model" {
		t.Errorf("a draft model of another vocabulary: %s", refused.Body)
	}
}

// TestDraft_ByWhatTheTextRepeats needs no model that drafts.
func TestDraft_ByWhatTheTextRepeats(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"model " + harness.Model + " {", "draft_model ngram-simple", "}"}})
	messages := []harness.Fields{{"role": "user", "content": "What is the capital of France?"}}
	ask := func() harness.Reply {
		return s.Post("/api/v0/chat/completions", harness.Fields{"model": harness.Model, "messages": messages, "temperature": 0, "max_tokens": 60}).Want(t, http.StatusOK)
	}
	for range 3 {
		said := ask()
		messages = append(messages, harness.Fields{"role": "assistant", "content": said.Get("choices.0.message.content").Str}, messages[0])
	}
	stats := ask().Get("stats")
	if stats.Get("draft_model").Str != harness.Model || stats.Get("total_draft_tokens_count").Int() == 0 {
		t.Errorf("stats %s", stats.Raw)
	}
}

// TestDraft_ByItsOwnHeads is the default for a model whose further layers predict tokens; off turns it off, with the same answer.
func TestDraft_ByItsOwnHeads(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.AddRandom("made/heads", randommodel.Predicting, 1)
	h.AddRandom("made/plain", randommodel.Predicting, 1)
	s := harness.Start(h, harness.Config{LM: []string{"model made/plain {", "draft_model off", "}"}})
	stats := func(model string) (gjson.Result, string) {
		reply := s.Post("/api/v0/chat/completions", harness.Ask(capital).With("model", model).With("temperature", 0).With("max_tokens", 40)).Want(t, http.StatusOK)
		return reply.Get("stats"), reply.Get("choices.0.message.content").Str
	}
	drafted, said := stats("made/heads")
	if drafted.Get("draft_model").Str != "made/heads" || drafted.Get("total_draft_tokens_count").Int() == 0 {
		t.Errorf("stats %s", drafted.Raw)
	}
	plain, same := stats("made/plain")
	if plain.Get("draft_model").Exists() || same != said {
		t.Errorf("without heads %q, stats %s; with them %q", same, plain.Raw, said)
	}
}
