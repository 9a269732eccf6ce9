package bench

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// swapped are two models that are swapped.
type swapped [2]string

// The target of a swap: how much longer than by hand it may take, absolutely or relatively, whichever is more.
const (
	swapRatio = 1.15
	swapExtra = 20 * time.Millisecond
)

// swaps measures swaps of the shipped model with itself under another key.
func swaps(t *testing.T, out io.Writer, p plan) []verdict {
	home := harness.NewHome(t)
	models := swapped{harness.Model, harness.Model + "-b"}
	home.AddModel(models[1], "tinychat-f16.gguf", harness.ShippedModel(t))
	printf(out, "\nSWAP OF MODELS (medians of %d, in turn; from the request for one model while the other is loaded to the first byte of the answer)", p.swaps)
	byHand, extra, _ := measureSwaps(t, out, home, models, p.swaps)
	limit := max(swapExtra, time.Duration((swapRatio-1)*float64(byHand)))
	return []verdict{{
		"swap of models, longer than by hand", seconds(extra.Seconds()), "at most " + seconds(limit.Seconds()), extra <= limit,
	}}
}

// measureSwaps measures the time from a request for one model, while the other is loaded and only one fits, to the first byte of its
// answer; and, alternating with that, the time of stopping and starting the same engines by hand. It returns medians.
func measureSwaps(t testing.TB, out io.Writer, home *harness.Home, models swapped, n int) (byHand, extra time.Duration, ratio float64) {
	server := harness.Start(home, harness.Config{LM: []string{"max_loaded 1"}})
	hands := newHands(t, server, models)
	var ours, theirs, extras []time.Duration
	var ratios []float64
	for i := range n {
		model := models[i%2]
		for _, who := range []struct {
			swap func(string) (time.Duration, error)
			took *[]time.Duration
		}{{func(m string) (time.Duration, error) { return swapByRequest(server, m) }, &ours}, {hands.swap, &theirs}} {
			took, err := who.swap(model)
			if err != nil {
				t.Fatal(err)
			}
			*who.took = append(*who.took, took)
		}
		extras = append(extras, ours[i]-theirs[i])
		ratios = append(ratios, float64(ours[i])/float64(theirs[i]))
	}
	byHand, extra, ratio = median(theirs), median(extras), median(ratios)
	printf(out, "%-18s%12s   there is room for one model, so the other is unloaded", "lmcaddy", seconds(median(ours).Seconds()))
	printf(out, "%-18s%12s   the other's engine is told to end, this one's started with the same arguments, awaited by its own word, and asked", "by hand", seconds(byHand.Seconds()))
	printf(out, "%-18s%12s   ratio %.2f (medians of each pair's)", "difference", seconds(extra.Seconds()), ratio)
	return byHand, extra, ratio
}

// swapByRequest requests the model that isn't loaded.
func swapByRequest(s *harness.Server, model string) (time.Duration, error) {
	begin := time.Now()
	return firstByte(begin, s.Base, model, "none")
}

// firstByte requests a stream, reads it to its end, and returns the time from begin to its first byte.
func firstByte(begin time.Time, base, model, apiKey string) (took time.Duration, err error) {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"temperature":0,"max_tokens":8,"messages":[{"role":"user","content":"Hello"}]}`, model)
	req, err := http.NewRequest(http.MethodPost, base+harness.ChatPath, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+apiKey)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	first := make([]byte, 1)
	_, err = io.ReadFull(resp.Body, first)
	took = time.Since(begin)
	if err != nil {
		return 0, err
	}
	rest, err := io.ReadAll(resp.Body)
	if text := string(first) + string(rest); resp.StatusCode != http.StatusOK || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		return 0, fmt.Errorf("%s from %s: status %d: %s", model, base, resp.StatusCode, text)
	}
	return took, err
}
