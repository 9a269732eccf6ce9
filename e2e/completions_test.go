package e2e

import (
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	completionsPath   = "/v1/completions"
	completionsPathV0 = "/api/v0/completions"
	embeddingsPath    = "/v1/embeddings"
)

func complete(prompt any) harness.Fields {
	return harness.Fields{"model": harness.Model, "prompt": prompt, "temperature": 0, "max_tokens": 4}
}

const capitalIs = "The capital of France is"

func TestCompletions_ContinueTheTextAsItIs(t *testing.T) {
	t.Parallel()
	overEngines(t, completionsContinueTheTextAsItIs)
}

func completionsContinueTheTextAsItIs(t *testing.T, e engine) {
	s := e.start(t, harness.Config{})
	reply := s.Post(completionsPath, complete(capitalIs)).Want(t, http.StatusOK)
	if reply.Get("choices.0.text").Str != e.first(" Paris.") || reply.Get("choices.0.finish_reason").Str != "length" {
		t.Errorf("%s", reply.Body)
	}
	if usage := reply.Get("usage"); usage.Get("prompt_tokens").Int() != 9 || usage.Get("completion_tokens").Int() != 4 {
		t.Errorf("usage %s: a template was applied, or it isn't the engine's", usage)
	}
}

func TestCompletions_ManyPromptsAreManyChoices(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, completionsManyPromptsAreManyChoices)
}

func completionsManyPromptsAreManyChoices(t *testing.T, s *harness.Server) {
	prompts := []string{capitalIs, capitalIs + " P", "Once upon", "hello you", "red river", capitalIs}
	var want []string
	tokens := int64(0)
	for _, prompt := range prompts {
		reply := s.Post(completionsPath, complete(prompt)).Want(t, http.StatusOK)
		want = append(want, reply.Get("choices.0.text").Str)
		tokens += reply.Get("usage.total_tokens").Int()
	}
	reply := s.Post(completionsPath, complete(prompts)).Want(t, http.StatusOK)
	var got []string
	for _, choice := range reply.Get("choices").Array() {
		got = append(got, choice.Get("text").Str)
	}
	if diff := cmp.Diff(want, got); diff != "" || reply.Get("usage.total_tokens").Int() != tokens {
		t.Errorf("usage %s, want %d in all; texts (-want +got):\n%s", reply.Get("usage"), tokens, diff)
	}
}

func TestCompletions_Echo(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	want := capitalIs + " Paris."
	for name, request := range map[string]harness.Fields{
		"text":   complete(capitalIs).With("echo", true),
		"tokens": complete([]int{285, 379, 368, 32, 70, 114, 282, 478, 333}).With("echo", true),
	} {
		reply := s.Post(completionsPath, request).Want(t, http.StatusOK)
		if got := reply.Get("choices.0.text").Str; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	reply := s.Post(completionsPath, complete(capitalIs).With("echo", true).With("max_tokens", 0)).Want(t, http.StatusOK)
	if reply.Get("choices.0.text").Str != capitalIs || reply.Get("usage.completion_tokens").Int() != 0 {
		t.Errorf("nothing more: %s", reply.Body)
	}
}

func TestCompletions_SuffixIsForModelsThatCan(t *testing.T) {
	t.Parallel()
	request := complete("The capital").With("suffix", " France")
	s := harness.Start(harness.NewHome(t), harness.Config{})
	reply := s.Post(completionsPath, request).Want(t, http.StatusBadRequest)
	wantOpenAIError(t, reply, "invalid_request_error", "unsupported_value")

	tokens := "--override-kv tokenizer.ggml.fim_pre_token_id=int:758,tokenizer.ggml.fim_suf_token_id=int:759,tokenizer.ggml.fim_mid_token_id=int:760"
	s = harness.Start(harness.NewHome(t), harness.Config{LM: []string{"model " + harness.Model + " {", "args " + tokens, "}"}})
	reply = s.Post(completionsPath, request).Want(t, http.StatusOK)
	if usage := reply.Get("usage"); usage.Get("completion_tokens").Int() != 4 || usage.Get("prompt_tokens").Int() < 7 || reply.Get("choices.0.text").Str == "" {
		t.Errorf("%s", reply.Body)
	}
}

func TestV0Completions_SayWhatReallyHappened(t *testing.T) {
	t.Parallel()
	overEngines(t, v0CompletionsSayWhatReallyHappened)
}

func v0CompletionsSayWhatReallyHappened(t *testing.T, e engine) {
	s := e.start(t, harness.Config{LM: []string{"model " + harness.Model + " {", "context_length 256", "}"}})
	chat := "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
	for want, request := range map[string]harness.Fields{
		"eosFound":                  complete(chat).With("max_tokens", 60),
		"stopStringFound":           complete(capitalIs).With("stop", "ris"),
		"maxPredictedTokensReached": complete(capitalIs),
		"contextLengthReached":      complete(capitalIs).With("max_tokens", -1).Endless(),
	} {
		reply := s.Post(completionsPathV0, request).Want(t, http.StatusOK)
		stats, runtime := reply.Get("stats"), reply.Get("runtime")
		if got := stats.Get("stop_reason").Str; got != want {
			t.Errorf("%s, want %s: %s", got, want, reply.Body)
		}
		for _, figure := range []string{"tokens_per_second", "time_to_first_token", "generation_time"} {
			if v := stats.Get(figure).Num; v <= 0 || v > 1e6 {
				t.Errorf("%s: %s is %v", want, figure, v)
			}
		}
		if runtime.Get("name").Str != e.runtime || runtime.Get("version").Str == "" || reply.Get("model_info.context_length").Int() != 256 {
			t.Errorf("%s: %s", want, reply.Body)
		}
	}
}

func TestV0Models_StateFollowsWhatIsLoaded(t *testing.T) {
	t.Parallel()
	s := harness.Start(withOthers(harness.NewHome(t)), harness.Config{})
	wantState := func(state string) {
		t.Helper()
		for _, path := range []string{harness.Model, "lmcaddy%2Ftinychat", harness.Bare} {
			reply := s.Get("/api/v0/models/"+path).Want(t, http.StatusOK)
			if reply.Get("id").Str != harness.Model || reply.Get("state").Str != state {
				t.Errorf("%s: %s, want %s", path, reply.Body, state)
			}
		}
	}
	wantState("not-loaded")
	s.Post(completionsPath, complete("Once")).Want(t, http.StatusOK)
	wantState("loaded")
	s.Post(harness.UnloadPath, harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
	wantState("not-loaded")
	types := map[string]string{}
	for _, m := range s.Get("/api/v0/models").Want(t, http.StatusOK).Get("data").Array() {
		types[m.Get("id").Str] = m.Get("type").Str
	}
	want := map[string]string{harness.Model: "llm", embedModel: "embeddings", rerankModel: "embeddings"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func vectors(reply harness.Reply) (all [][]float64) {
	for _, item := range reply.Get("data").Array() {
		var vector []float64
		for _, x := range item.Get("embedding").Array() {
			vector = append(vector, x.Num)
		}
		all = append(all, vector)
	}
	return all
}

func cosine(a, b []float64) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot, aa, bb = dot+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return dot / math.Sqrt(aa*bb)
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	s := harness.Start(withOthers(harness.NewHome(t)), harness.Config{})
	embed := func(input any) harness.Fields { return harness.Fields{"model": embedModel, "input": input} }
	reply := s.Post(embeddingsPath, embed([]string{"red river", "blue sky", "red river"})).Want(t, http.StatusOK)
	all := vectors(reply)
	if len(all) != 3 || cosine(all[0], all[2]) < 0.9999 || cosine(all[0], all[1]) > 0.9999 {
		t.Fatalf("%d vectors: %s", len(all), reply.Body)
	}
	if reply.Get("usage.prompt_tokens").Int() < 3 || reply.Get("model").Str != embedModel {
		t.Errorf("model %s, usage %s", reply.Get("model"), reply.Get("usage"))
	}
	one := vectors(s.Post("/api/v0/embeddings", embed("blue sky")).Want(t, http.StatusOK))
	if len(one) != 1 || cosine(one[0], all[1]) < 0.9999 {
		t.Errorf("alone it is another one")
	}
	short := vectors(s.Post(embeddingsPath, embed("blue sky").With("dimensions", 8)).Want(t, http.StatusOK))
	if len(short[0]) != 8 || cosine(short[0], all[1][:8]) < 0.9999 {
		t.Errorf("shortened: %v", short)
	}
	long := s.Post(embeddingsPath, embed(make([]int, 600))).Want(t, http.StatusBadRequest)
	wantOpenAIError(t, long, "invalid_request_error", "context_length_exceeded")
	s.Post(embeddingsPath, embed("a").With("dimensions", 100_000)).Want(t, http.StatusBadRequest)
	s.Post(embeddingsPath, embed("a").With("model", harness.Model)).Want(t, http.StatusBadRequest)
	s.Post(embeddingsPath, embed("a").With("model", rerankModel)).Want(t, http.StatusBadRequest)
}

func TestRerank(t *testing.T) {
	t.Parallel()
	s := harness.Start(withOthers(harness.NewHome(t)), harness.Config{})
	documents := []string{"blue sky", "red river", "the food was delicious"}
	request := harness.Fields{"model": rerankModel, "query": "red river", "documents": documents}
	reply := s.Post("/v1/rerank", request).Want(t, http.StatusOK)
	var scores []float64
	var order []int64
	for _, item := range reply.Get("results").Array() {
		scores = append(scores, -item.Get("relevance_score").Num)
		order = append(order, item.Get("index").Int())
	}
	if len(scores) != 3 || !slices.IsSorted(scores) || reply.Get("usage.total_tokens").Int() < 6 {
		t.Errorf("%s", reply.Body)
	}
	best := s.Post("/v1/rerank", request.With("top_n", 1).With("return_documents", true)).Want(t, http.StatusOK)
	if best.Get("results.#").Int() != 1 || best.Get("results.0.index").Int() != order[0] || best.Get("results.0.document.text").Str != documents[order[0]] {
		t.Errorf("the best: %s", best.Body)
	}
	s.Post("/v1/rerank", request.With("model", embedModel)).Want(t, http.StatusBadRequest)
}
