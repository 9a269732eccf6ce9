package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// usedBy is what an owner has used of a model since the start, when it is as much as that many requests.
func (s *server) usedBy(owner, model string, requests int64) (used store.UsageCount) {
	s.t.Helper()
	testkit.Eventually(s.t, "the requests are counted", func() bool { // a stream's end is seen before it is counted
		s.node.Record.Usage.Totals(func(o, m string, n store.UsageCount) {
			if o == owner && m == model {
				used = n
			}
		})
		return used.Requests >= requests
	})
	return used
}

func TestUsage_OfEachEndpoint(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{Reasoning: "Well then.", Text: "one two three"}, PromptTokens: 7, CachedTokens: 2, IgnoreLimits: true,
	}}})
	withOthers(s)
	s = guarded(s)
	const messages = `"model":"tinychat","max_tokens":2000,"messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct {
		path, body string
		model      string
		out        int64 // tokens; -1: as many as the answer says
	}{
		"chat":       {"/v1/chat/completions", messages, "tinychat", 5},
		"v0 chat":    {"/api/v0/chat/completions", messages, "tinychat", 5},
		"messages":   {"/v1/messages", messages + `,"thinking":{"type":"enabled","budget_tokens":1024}`, "tinychat", 5},
		"native":     {"/api/v1/chat", `"model":"tinychat","input":"hi"`, "tinychat", 5},
		"completion": {"/v1/completions", `"model":"tinychat","prompt":"x"`, "tinychat", 3},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name+" "+strconv.FormatBool(stream), func(t *testing.T) {
				t.Parallel()
				s := *s
				s.t = t
				secret, made := s.token(access.Token{})
				got := s.with(secret, "POST", tt.path, "{"+tt.body+`,"stream":`+strconv.FormatBool(stream)+"}")
				if got.status != 200 {
					t.Fatalf("%d %s", got.status, got.body)
				}
				used := s.usedBy(made.ID, "lmcaddy/"+tt.model, 1)
				if want := (store.UsageCount{Requests: 1, TokensIn: 7, TokensOut: tt.out}); used != want {
					t.Errorf("%+v, want %+v", used, want)
				}
			})
		}
	}
	for path, body := range map[string]string{
		"/v1/embeddings":     `{"model":"tinyembed","input":"hi there"}`,
		"/api/v0/embeddings": `{"model":"tinyembed","input":"hi there"}`,
		"/v1/rerank":         `{"model":"tinyrerank","query":"x","documents":["y"]}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := *s
			s.t = t
			secret, made := s.token(access.Token{})
			got := s.with(secret, "POST", path, body)
			model := "lmcaddy/" + gjson.Get(body, "model").Str
			used, want := s.usedBy(made.ID, model, 1), gjson.Get(got.body, "usage.total_tokens").Int()
			if used != (store.UsageCount{Requests: 1, TokensIn: want}) || want == 0 {
				t.Errorf("%+v, the answer says %s", used, gjson.Get(got.body, "usage"))
			}
		})
	}
}

func TestUsage_OfWhatIsCancelled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, body string }{
		"chat":                 {"/v1/chat/completions", `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		"chat in a body":       {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`},
		"messages":             {"/v1/messages", `{"model":"tinychat","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		"messages in a body":   {"/v1/messages", `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		"native":               {"/api/v1/chat", `{"model":"tinychat","stream":true,"input":"hi"}`},
		"native in a body":     {"/api/v1/chat", `{"model":"tinychat","input":"hi"}`},
		"completion":           {"/v1/completions", `{"model":"tinychat","stream":true,"prompt":"hi"}`},
		"completion in a body": {"/v1/completions", `{"model":"tinychat","prompt":"hi"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
				PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
			}}})
			s = guarded(s)
			secret, made := s.token(access.Token{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Api-Key", secret)
			seen, gone := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(gone)
				resp, err := s.Client().Do(req)
				if err != nil {
					return
				}
				defer resp.Body.Close()
				var read strings.Builder
				for buf := make([]byte, 1000); err == nil && !strings.Contains(read.String(), "two"); {
					var n int
					n, err = resp.Body.Read(buf)
					read.Write(buf[:n])
				}
				close(seen)
				_, _ = io.Copy(io.Discard, resp.Body) // until it is cancelled
			}()
			s.fake.Wait(t, fakeengine.At("never"))
			least := int64(0) // what was on its way when the client left may have been seen or not
			if strings.Contains(tt.body, `"stream":true`) {
				<-seen
				least = 2
			}
			cancel()
			<-gone
			if used := s.usedBy(made.ID, "lmcaddy/tinychat", 1); used.Requests != 1 || used.TokensIn > 7 || used.TokensOut < least || used.TokensOut > 2 {
				t.Errorf("%+v", used)
			}
		})
	}
}

func TestUsage_IsForItsOwnerAndForAdministrators(t *testing.T) {
	t.Parallel()
	onOneDay()
	open := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}})
	open.chat("")
	s := guarded(open)
	ann, annes := s.token(access.Token{})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for range 2 {
		if got := s.with(ann, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	today := time.Now().UTC().Format(time.DateOnly)
	line := func(owner string, times string) string {
		in, out := "14", "4"
		if times == "1" {
			in, out = "7", "2"
		}
		return `{"day":"` + today + `","owner":"` + owner + `","model":"lmcaddy/tinychat","requests":` + times + `,"input_tokens":` + in + `,"output_tokens":` + out + `}`
	}
	for name, tt := range map[string]struct{ got, want string }{
		"own":      {s.with(ann, "GET", "/api/v1/usage", "").body, line(annes.ID, "2")},
		"all":      {s.with(admin, "GET", "/api/v1/usage?from="+today+"&to="+today, "").body, line("", "1") + "," + line(annes.ID, "2")},
		"nobody's": {open.do("GET", "/api/v1/usage", "").body, line("", "1")},
		"earlier":  {s.with(admin, "GET", "/api/v1/usage?from=2001-01-01&to=2001-01-31", "").body, ""},
	} {
		if diff := cmp.Diff("["+tt.want+"]", gjson.Get(tt.got, "usage").Raw); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := s.with(ann, "GET", "/api/v1/usage?from=2026-01-02&to=2026-01-01", ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != "from" {
		t.Errorf("from after to: %d %s", got.status, got.body)
	}
	if got := s.with(ann, "GET", "/api/v1/usage?from=yesterday", ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != "from" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// onOneDay waits for the next day if this one, in UTC, is about to end: what is counted after it is counted on one day.
func onOneDay() {
	if left := 24*time.Hour - time.Since(time.Now().UTC().Truncate(24*time.Hour)); left < time.Minute {
		time.Sleep(left)
	}
}

func TestUsage_SummedUp(t *testing.T) {
	t.Parallel()
	onOneDay()
	open := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}})
	open.chat("")
	s := guarded(open)
	ann, annes := s.token(access.Token{Name: "Ann", Limits: access.Limits{TokensPerDay: 5000}})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for range 2 {
		if got := s.with(ann, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	const three, two, one = `"requests":3,"input_tokens":21,"output_tokens":6}`, `"requests":2,"input_tokens":14,"output_tokens":4}`, `"requests":1,"input_tokens":7,"output_tokens":2}`
	now := time.Now().UTC()
	today, week := now.Format(time.DateOnly), now.AddDate(0, 0, -6).Format(time.DateOnly)
	head := func(by string) string {
		return `{"from":"` + week + `","to":"` + today + `","by":"` + by + `","usage":[`
	}
	annesRow := `{"owner":"` + annes.ID + `","name":"Ann","tokens_today":18,"tokens_per_day":5000,` + two
	for name, tt := range map[string]struct{ secret, by, want string }{
		"models":           {admin, "model", `{"model":"lmcaddy/tinychat",` + three + `],"total":{` + three + `}`},
		"days":             {admin, "day", `{"day":"` + today + `",` + three + `],"total":{` + three + `}`},
		"tokens":           {admin, "token", annesRow + `,{"owner":"","tokens_today":9,` + one + `],"total":{` + three + `}`},
		"one's own models": {ann, "model", `{"model":"lmcaddy/tinychat",` + two + `],"total":{` + two + `}`},
		"one's own token":  {ann, "token", annesRow + `],"total":{` + two + `}`},
	} {
		got := s.with(tt.secret, "GET", "/api/v1/usage?since=7d&by="+tt.by, "")
		if diff := cmp.Diff(head(tt.by)+tt.want, got.body); diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", name, got.status, diff)
		}
	}
	for query, param := range map[string]string{
		"by=owner": "by", "since=7": "since", "since=0d": "since", "since=99999d": "since", "since=-1d": "since", "since=7d&from=2026-01-01": "since",
	} {
		if got := s.with(admin, "GET", "/api/v1/usage?"+query, ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := s.with(admin, "GET", "/api/v1/usage?from=2001-01-01&to=2001-01-02&by=model", ""); !strings.HasSuffix(got.body, `"usage":[],"total":{"requests":0,"input_tokens":0,"output_tokens":0}}`) {
		t.Errorf("earlier: %s", got.body)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	onOneDay()
	s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "wait", Gate: "go"}, {PromptTokens: 7}}}))
	ask := func(secret, text string) answer {
		return s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"`+text+`"}]}`)
	}
	limited := func(got answer, least, most int) {
		t.Helper()
		after, _ := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != 429 || got.code() != "rate_limit_exceeded" || after < least || after > most {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
	fine := func(got answer) {
		t.Helper()
		if got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	unlimited, _ := s.token(access.Token{})
	fine(ask(unlimited, "hi")) // loads the model, which may take a part of a minute
	t.Run("requests a minute", func(*testing.T) {
		secret, _ := s.token(access.Token{Limits: access.Limits{RequestsPerMinute: 2}})
		fine(ask(secret, "hi"))
		fine(ask(secret, "hi"))
		limited(ask(secret, "hi"), 1, 60)
		fine(s.with(secret, "GET", "/v1/models", "")) // asks no model
	})
	t.Run("tokens a day", func(*testing.T) {
		secret, _ := s.token(access.Token{Limits: access.Limits{TokensPerDay: 8}})
		fine(ask(secret, "hi"))
		limited(ask(secret, "hi"), 1, 24*60*60)
	})
	t.Run("at a time", func(t *testing.T) {
		secret, _ := s.token(access.Token{Limits: access.Limits{Concurrent: 1}})
		first := make(chan answer, 1)
		go func() { first <- ask(secret, "wait") }()
		s.fake.Wait(t, fakeengine.At("go"))
		limited(ask(secret, "hi"), 1, 1)
		s.fake.Release("go")
		fine(<-first)
		fine(ask(secret, "hi"))
	})
}

// What requests may use is set aside while they are under way: however many come at once, and whatever they ask for, a day's
// use exceeds its limit by no more than one prompt.
func TestLimits_TokensADayOfManyAtOnce(t *testing.T) {
	t.Parallel()
	onOneDay()
	s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: strings.Repeat("word ", 300)}}}}))
	const limit, prompt = 50, 7
	for name, tt := range map[string]struct{ path, body string }{
		"chat":           {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`},
		"chat, max":      {"/v1/chat/completions", `{"model":"tinychat","max_tokens":200,"messages":[{"role":"user","content":"hi"}]}`},
		"chat, n":        {"/v1/chat/completions", `{"model":"tinychat","n":3,"messages":[{"role":"user","content":"hi"}]}`},
		"chat, streamed": {"/v1/chat/completions", `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		"n_predict":      {"/v1/chat/completions", `{"model":"tinychat","n_predict":-1,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`},
		"messages":       {"/v1/messages", `{"model":"tinychat","max_tokens":2000,"messages":[{"role":"user","content":"hi"}]}`},
		"native":         {"/api/v1/chat", `{"model":"tinychat","input":"hi"}`},
		"completions":    {"/v1/completions", `{"model":"tinychat","prompt":"x","best_of":3,"max_tokens":100}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := *s
			s.t = t
			secret, made := s.token(access.Token{Limits: access.Limits{TokensPerDay: limit}})
			var all sync.WaitGroup
			var answered atomic.Int64
			for range 100 {
				all.Go(func() {
					switch got := s.with(secret, "POST", tt.path, tt.body); {
					case got.status == 200:
						answered.Add(1)
					case got.status != 429 || got.header.Get("Retry-After") == "":
						t.Errorf("%d %v %s", got.status, got.header, got.body)
					}
				})
			}
			all.Wait()
			if answered.Load() == 0 {
				t.Error("none is answered")
			}
			used := s.usedBy(made.ID, "lmcaddy/tinychat", answered.Load())
			if got := used.TokensIn + used.TokensOut; got > limit+prompt {
				t.Errorf("%d tokens are used, of %d", got, limit)
			}
		})
	}
	t.Run("too many choices", func(t *testing.T) {
		secret, _ := s.token(access.Token{Limits: access.Limits{TokensPerDay: limit}})
		got := s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","n":100,"messages":[{"role":"user","content":"hi"}]}`)
		if got.status != 429 || !strings.Contains(got.body, "50 more tokens today") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
