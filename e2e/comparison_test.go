package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	before   = flag.String("before", "", "an older lmcaddy: TestRandomRequests sends it the same requests, one by one, and compares the answers")
	expected = flag.String("expected", "^$", "with -before: what has been changed on purpose, a regular expression, of whose matches only four groups are compared")
	requests = flag.Int("requests", randomRequests, "with -before: how many")
)

// variable is what differs from one answer to the next, and what stands for it.
var variable = []struct {
	*regexp.Regexp

	constant string
}{
	{regexp.MustCompile(`sk-lm-\w+:\w+|\b\w{8}/s\.sock`), "OWN"},
	{regexp.MustCompile(`("(?:id|owner)":")\w{8}"`), "${1}OWN"},
	{regexp.MustCompile(`("(?:pid|\w+_at|created)":\s*)\d+`), "${1}0"},
	{regexp.MustCompile(`\b([a-z]+)[-_][0-9A-Za-z]{16,}`), "${1}_ID"},
	{regexp.MustCompile(`\b(?:[0-9a-z]{26}|[0-9A-Za-z]{32})\b`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`("(?:\w+_seconds|\w+_ms|\w+_duration|\w*per_second|pays_from_tokens|time_to_first_token|generation_time|(?:\w*memory|free|taken|claimed)_bytes|size|size_vram)":\s*)[-+.\de]+`), "${1}0"},
	{regexp.MustCompile(`("(?:digest|next_cursor|version)":\s*")[^"]+`), "${1}DIGEST"},
	// Which slot a choice takes, and so what of a later prompt is in a slot, is decided by the order in which choices come.
	{regexp.MustCompile(`("cached_(?:input_)?tokens":)\d+|"input_tokens":\d+,("cache_creation_input_tokens":0),"cache_read_input_tokens":\d+`), "${1}${2}"},
	{regexp.MustCompile(`/tmp/lm\d+`), "HOME"},
}

// compareAnswers sends requests to a server of each program, half of them with the real engine, and half with a token and an
// engine whose answers have calls and thoughts.
func compareAnswers(t *testing.T, older string, n int) {
	older, err := filepath.Abs(older)
	if err != nil {
		t.Fatal(err)
	}
	fake := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{
		{"Contains": "é🎉", "Status": 500},
		{"Contains": "<think>", "Status": 400},
		{"Contains": "a b a b", "Answer": harness.Fields{"Reasoning": "Let me see.", "Text": "It is a\nb."}},
		{
			"Contains": `"tools":[`, "Answer": harness.Fields{"Calls": []harness.Fields{{"Name": "f", "Arguments": `{"a":1}`}}},
			"AfterTools": []harness.Fields{{"Text": "Done."}},
		},
		{},
	}})
	for seed, c := range []harness.Config{{Engine: []string{"args --seed 1"}}, {Engine: fake.Lines(), Site: []string{"lm_auth"}}} {
		t.Run(c.Engine[0], func(t *testing.T) {
			t.Parallel()
			c.LM = []string{"allow raw_grammar"}
			compareServers(t, startCompared(t, older, c), startCompared(t, "", c), uint64(seed), n/2)
		})
	}
}

// comparedServer is one of two servers that are compared.
type comparedServer struct {
	*harness.Server

	changed *regexp.Regexp // on purpose
	latest  string         // the id of its latest response
}

// startCompared starts a program with models for texts, embeddings and ranks. Their times are fixed, since Ollama's lists are in that order.
func startCompared(t *testing.T, program string, c harness.Config) *comparedServer {
	h := harness.NewHome(t)
	h.Binary = program
	for order, model := range []string{"tinyembed", "tinyrerank"} {
		content, err := os.ReadFile(filepath.Join("../testdata/models/lmcaddy", model, model+"-f16.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		path := h.AddModel("lmcaddy/"+model, model+".gguf", content)
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(order), 0)); err != nil {
			t.Fatal(err)
		}
	}
	s := harness.Start(h, c)
	if c.Site != nil {
		s = s.As(created(t, h, "--name", "x", "--scopes", "admin"))
	}
	return &comparedServer{s, regexp.MustCompile(*expected), lastResponse}
}

var (
	responseID = regexp.MustCompile(`\bresp_[0-9a-zA-Z]{16,}`)

	// Several choices are made at once, so that the chunks of their streams are mixed, the last one has the figures, and the engine adds up in another order.
	severalChoices = regexp.MustCompile(`"n":[23]|"best_of"|"prompt":\[["\[]`)
	choiceIndex    = regexp.MustCompile(`"choices":\[\{"index":\d|$`)
	lastFigures    = regexp.MustCompile(`,"stats":.*\]\}|"logprob":[-.\de]+`)
)

// answer returns the lines of an answer, without what varies.
func (s *comparedServer) answer(method, path, body string) []string {
	own := strings.NewReplacer(lastResponse, s.latest, `"seed":-1`, `"seed":1`)
	reply := s.Do(method, own.Replace(path), strings.NewReader(own.Replace(body)))
	if id := responseID.FindString(reply.Body); id != "" {
		s.latest = id
	}
	text := strings.ReplaceAll(reply.Body, strings.TrimPrefix(s.Base, "http://"), "HOST")
	for _, v := range variable {
		text = v.ReplaceAllString(text, v.constant)
	}
	text = s.changed.ReplaceAllString(text, "$1$2$3$4")
	isSignOfLife := func(line string) bool { return strings.HasPrefix(line, ":") }
	lines := slices.DeleteFunc(strings.Split(text, "\n"), isSignOfLife)
	if severalChoices.MatchString(body) {
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(choiceIndex.FindString(a), choiceIndex.FindString(b)) })
		for i := range lines {
			lines[i] = lastFigures.ReplaceAllString(lines[i], "")
		}
	}
	return append([]string{fmt.Sprint(reply.Status), reply.Header.Get("Content-Type")}, lines...)
}

func compareServers(t *testing.T, before, after *comparedServer, seed uint64, n int) {
	different, counts := 0, map[string]int{}
	for i := range n {
		method, path, body := anyRequest(rand.New(rand.NewPCG(seed, uint64(i))))
		was, is := before.answer(method, path, body), after.answer(method, path, body)
		if diff := cmp.Diff(was, is); diff != "" {
			different++
			t.Errorf("request %d: %s %s %.3000s\n%s", i, method, path, body, diff)
		}
		counts[method+" "+path+" "+is[0]]++
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d", name, counts[name])
	}
	t.Logf("%d of %d answers differ", different, n)
}
