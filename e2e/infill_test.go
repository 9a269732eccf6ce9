package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// fillsGaps makes the shipped model one that fills gaps.
var fillsGaps = []string{"model " + harness.Model + " {", "args --override-kv tokenizer.ggml.fim_pre_token_id=int:758," +
	"tokenizer.ggml.fim_suf_token_id=int:759,tokenizer.ggml.fim_mid_token_id=int:760", "}"}

// TestInfill_AsAnEditorAsks sends what llama.vim sends while somebody types: a request at each pause, most of which it gives up. None is left
// behind, and a chat's prompt stays in its slot. The requests have the fields and values of its s:ring_update and s:fim_request, which name no
// model.
func TestInfill_AsAnEditorAsks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: fillsGaps})
	said := []harness.Fields{{"role": "user", "content": strings.Repeat("The river is red. ", 40)}}
	chat := func() harness.Reply {
		return s.Post(harness.ChatPath, harness.Fields{"model": harness.Model, "messages": said, "max_tokens": 8, "temperature": 0}).Want(t, http.StatusOK)
	}
	first := chat()
	data, err := os.ReadFile("testdata/llamavim/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	requests := strings.Split(strings.TrimSpace(string(data)), "\n")
	last := len(requests) - 1
	for i, request := range requests {
		if i == 0 || i == last {
			reply := s.Post("/infill", json.RawMessage(request)).Want(t, http.StatusOK)
			if i == last && (!reply.Get("content").Exists() || reply.Get(`timings/predicted_n`).Int() < 1 || reply.Get("model").Exists()) {
				t.Errorf("%s", reply.Body)
			}
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Base+"/infill", strings.NewReader(request))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
		cancel()
	}
	harness.Eventually(t, harness.Patience, "nothing runs any more", func() bool {
		slots := s.Get("/slots?model="+harness.Model).Want(t, http.StatusOK)
		return len(gjson.Get(slots.Body, "#(is_processing==true)#").Array()) == 0 && slots.Get("#").Int() > 0
	})
	said = append(said, harness.Fields{"role": "assistant", "content": first.Get("choices.0.message.content").Str}, harness.Fields{"role": "user", "content": "And the sky?"})
	before := first.Get("usage.prompt_tokens").Int()
	if usage := chat().Get("usage"); usage.Get("prompt_tokens_details.cached_tokens").Int() < before-8 {
		t.Errorf("the chat had %d tokens, of which are left %s", before, usage.Raw)
	}
}

// TestInside_AsLlamaServer shows how the model reads a text.
func TestInside_AsLlamaServer(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: fillsGaps})
	const text = "The river is red."
	tokens := s.Post("/tokenize", harness.Fields{"content": text}).Want(t, http.StatusOK)
	if back := s.Post("/detokenize", json.RawMessage(tokens.Body)).Want(t, http.StatusOK); back.Get("content").Str != text {
		t.Errorf("%s", back.Body)
	}
	pieces := s.Post("/tokenize", harness.Fields{"model": harness.Model, "content": text, "with_pieces": true}).Want(t, http.StatusOK)
	if pieces.Get("tokens.0.piece").Str == "" || pieces.Get("tokens.#").Int() != tokens.Get("tokens.#").Int() {
		t.Errorf("%s", pieces.Body)
	}
	s.Post("/detokenize", harness.Fields{"tokens": []int{1 << 20}}).Want(t, http.StatusBadRequest)
	prompt := s.Post("/apply-template", harness.Fields{"messages": []harness.Fields{{"role": "user", "content": text}}}).Want(t, http.StatusOK)
	if !strings.Contains(prompt.Get("prompt").Str, "<|im_start|>user\n"+text) {
		t.Errorf("%s", prompt.Body)
	}
	props := s.Get("/props").Want(t, http.StatusOK)
	if props.Get("chat_template").Str == "" || props.Get("total_slots").Int() < 1 || props.Get("default_generation_settings.n_ctx").Int() < 256 {
		t.Errorf("%s", props.Body)
	}
	fim := s.Post("/v1/fim/completions", harness.Fields{"model": harness.Model, "prompt": "The river", "suffix": " red.", "max_tokens": 4}).Want(t, http.StatusOK)
	if fim.Get("choices.0.message.content").Str == "" || fim.Get("usage.completion_tokens").Int() != 4 {
		t.Errorf("%s", fim.Body)
	}
}
