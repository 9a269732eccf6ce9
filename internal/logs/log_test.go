package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messages are those of records.
func messages(records []*Record) (all []string) {
	for _, r := range records {
		all = append(all, r.Message)
	}
	return all
}

func logger(l *Log, next slog.Handler, sparing bool) *slog.Logger {
	return slog.New(l.Handler("lm", next, sparing))
}

var discard = slog.DiscardHandler

func TestLog_Filters(t *testing.T) {
	t.Parallel()
	l := New()
	log := logger(l, discard, false)
	log.Info("loading", "instance", "a/b:2")
	log.Debug("engine", "instance", "a/b", "line", "x")
	log.Warn("broken", "model", "c/d")
	log.Error("failed", "request", "req_1")
	log.Debug("restored", "instance", "c/d")
	log.With("request", "req_2", "instance", "c/d").Info("with")
	for name, tt := range map[string]struct {
		f    Filter
		n    int
		want []string
	}{
		"all but debug":         {Filter{}, 99, []string{"loading", "broken", "failed", "with"}},
		"all":                   {Filter{Level: slog.LevelDebug}, 99, []string{"loading", "engine", "broken", "failed", "restored", "with"}},
		"the last":              {Filter{Level: slog.LevelDebug}, 2, []string{"restored", "with"}},
		"warnings":              {Filter{Level: slog.LevelWarn}, 99, []string{"broken", "failed"}},
		"with engines":          {Filter{Output: true}, 99, []string{"loading", "engine", "broken", "failed", "with"}},
		"warnings with engines": {Filter{Level: slog.LevelWarn, Output: true}, 99, []string{"engine", "broken", "failed"}},
		"a model":               {Filter{Models: []string{"A/B"}}, 99, []string{"loading"}},
		"two names of a model":  {Filter{Models: []string{"b", "c/d"}, Level: slog.LevelDebug}, 99, []string{"broken", "restored", "with"}},
		"an instance":           {Filter{Instance: "a/b:2"}, 99, []string{"loading"}},
		"a request":             {Filter{Request: "req_1"}, 99, []string{"failed"}},
		"a request by With":     {Filter{Request: "req_2"}, 99, []string{"with"}},
		"nothing since":         {Filter{Since: time.Now().Add(time.Hour)}, 99, nil},
		"none":                  {Filter{}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := l.Last(tt.n, tt.f)
			if diff := cmp.Diff(tt.want, messages(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Lines of engines never displace what is worth knowing.
func TestLog_DebugDisplacesNothingElse(t *testing.T) {
	t.Parallel()
	l := New()
	log := logger(l, discard, false)
	log.Warn("the disk is nearly full")
	for range 3 * mostDebug {
		log.Debug("engine", "line", "noise")
	}
	got := l.Last(mostDebug*9, Filter{Level: slog.LevelDebug})
	if len(got) != mostDebug+1 || got[0].Message != "the disk is nearly full" {
		t.Errorf("%d records, the first is %q", len(got), got[0].Message)
	}
}

type leveled struct {
	slog.Handler
	least   slog.Level
	written *[]slog.Record
}

func (h leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= h.least }
func (h leveled) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h leveled) Handle(_ context.Context, r slog.Record) error {
	*h.written = append(*h.written, r)
	return nil
}

func TestHandler_TheOtherLogIsAsBefore(t *testing.T) {
	t.Parallel()
	var written []slog.Record
	log := logger(New(), leveled{discard, slog.LevelInfo, &written}, false)
	log.Debug("no")
	log.With("a", 1).Info("yes", "b", 2)
	if len(written) != 1 || written[0].Message != "yes" || written[0].NumAttrs() != 1 {
		t.Errorf("%v", written)
	}
}

func TestHandler_SparesWhatNobodyFollows(t *testing.T) {
	t.Parallel()
	l := New()
	log := logger(l, discard, true)
	if log.Enabled(t.Context(), slog.LevelDebug) || !log.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("records at debug level are made for nobody, or others aren't made")
	}
	reader := l.Follow(Position{}, Filter{Level: slog.LevelDebug})
	if !log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("records at debug level aren't made for who follows them")
	}
	reader.Close()
	if log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("records at debug level are still made")
	}
}

func TestHandler_AddsTheRequestOfTheContext(t *testing.T) {
	t.Parallel()
	var written []slog.Record
	l := New()
	log := logger(l, leveled{discard, slog.LevelInfo, &written}, false)
	ctx := WithRequest(t.Context(), "req_1")
	log.InfoContext(ctx, "a")
	log.InfoContext(ctx, "b", "request", "req_2")
	log.Info("c")
	var got []string
	records := l.Last(9, Filter{})
	for _, r := range records {
		got = append(got, r.Message+" "+r.Request+" "+string(r.Fields))
	}
	if diff := cmp.Diff([]string{`a req_1 {"request":"req_1"}`, `b req_2 {"request":"req_2"}`, "c  "}, got); diff != "" {
		t.Error(diff)
	}
	if written[0].NumAttrs() != 1 || written[1].NumAttrs() != 1 || written[2].NumAttrs() != 0 {
		t.Errorf("the other log has %v", written)
	}
}

type stringer struct{}

func (stringer) String() string { return "it" }

func TestFields(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	r := Fields(slog.String("model", "a/b"), slog.Int("n", -3), slog.Uint64("u", 7), slog.Bool("yes", true), slog.Float64("f", 0.5),
		slog.Duration("took", 1416789*time.Microsecond), slog.Time("at", at), slog.Any("error", errors.New(`it "failed"`)),
		slog.Any("list", []string{"a", "b"}), slog.Any("is", stringer{}), slog.Any("none", nil), slog.Any("v", struct{ A int }{1}),
		slog.Group("g", slog.String("model", "no")), slog.String("long", strings.Repeat("大", maxText)))
	want := `{"model":"a/b","n":-3,"u":7,"yes":true,"f":0.5,"took":"1.417s","at":"2026-01-02T03:04:05.0000006Z","error":"it \"failed\"",` +
		`"list":["a","b"],"is":"it","none":null,"v":"{A:1}","g.model":"no","long":"`
	got := string(r.Fields)
	if !strings.HasPrefix(got, want) || len(got) > len(want)+maxText+10 || !strings.HasSuffix(got, `大…"}`) {
		t.Errorf("%.400s", got)
	}
	if r.Model != "a/b" {
		t.Errorf("the model is %q", r.Model)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"a token sk-lm-abcdefgh:0123456789abcdefghij, refused": "a token sk-lm-…, refused",
		"Authorization: Bearer abc.def-ghi":                    "Authorization: Bearer …",
		"hf_abcdefghijkl":                                      "hf_…",
		"postgres://lm:secret@db:5432/lm":                      "postgres://lm:…@db:5432/lm",
		"http://127.0.0.1:1234/v1":                             "http://127.0.0.1:1234/v1",
		"nothing to hide":                                      "nothing to hide",

		"starting with OPENAI_API_KEY=abcdef-123456 on port=8080":   "starting with OPENAI_API_KEY=… on port=8080",
		`{"X-Api-Key": "abcdef123456", "n": 3}`:                     `{"X-Api-Key": "…", "n": 3}`,
		`{\"client_secret\":\"abcdef123456\"}`:                      `{\"client_secret\":\"…\"}`,
		"GET http://h/x?access_token=abcdef123&b=2":                 "GET http://h/x?access_token=…&b=2",
		"Authorization: Basic dXNlcjpwYXNz; next":                   "Authorization: Basic …; next",
		"password: correct-horse, user: ann; PGPASSWORD='abcdef12'": "password: …, user: ann; PGPASSWORD='…'",
		"key sk-ant-api03-abcdefgh and ghp_abcdefgh":                "key sk-ant-… and ghp_…",
		"EOS token        = 151645 '<|im_end|>'":                    "EOS token        = 151645 '<|im_end|>'",
		"eos_token = <|im_end|>, n_tokens = 123456":                 "eos_token = <|im_end|>, n_tokens = 123456",
		"per_token: 123.456 ms, time_per_token=1234.56ms":           "per_token: 123.456 ms, time_per_token=1234.56ms",
		"api_key=, token=x, password":                               "api_key=, token=x, password",
	} {
		if got := Redact(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// What is redacted in the kept log is so in the other one.
func TestHandler_RedactsBothLogs(t *testing.T) {
	t.Parallel()
	var other bytes.Buffer
	l := New()
	log := slog.New(l.Handler("lm", slog.NewJSONHandler(&other, nil), false)).With("key", "sk-lm-abcdefgh")
	log.Info("with hf_abcdefghijkl",
		"error", errors.New("refused: Authorization: Bearer abcdefgh"), "list", []string{"PASSWORD=abcdefgh", "b"}, "any", []any{1, "ghp_abcdefgh"},
		slog.Group("in", "url", "postgres://lm:abcdefgh@db/lm", "n", 3), "plain", "as it is", "took", time.Second)
	kept := l.Last(9, Filter{Level: slog.LevelDebug})
	if len(kept) != 1 || strings.Contains(kept[0].Message+string(kept[0].Fields), "abcdefgh") {
		t.Errorf("kept: %+v", kept)
	}
	want := `"msg":"with hf_…","key":"sk-lm-…","error":"refused: Authorization: Bearer …","list":["PASSWORD=…","b"],"any":[1,"ghp_…"],"in":{"url":"postgres://lm:…@db/lm","n":3},"plain":"as it is","took":1000000000}`
	if got := other.String(); !strings.Contains(got, want) {
		t.Errorf("the other log has %s", got)
	}
}

func TestReader_FollowsAndTellsWhatIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(3, 100, "boot")
		log := logger(l, discard, false)
		log.Info("0")
		at := l.Before(0, Filter{})
		reader := l.Follow(at, Filter{})
		defer reader.Close()
		got := make(chan []string)
		next := func() {
			records, err := reader.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- messages(records)
		}
		go next()
		synctest.Wait()
		log.Debug("not looked for")
		log.Info("1")
		if diff := cmp.Diff([]string{"1"}, <-got); diff != "" {
			t.Error(diff)
		}
		for i := range 8 {
			log.Info(fmt.Sprint(2 + i))
		}
		records, _ := reader.Next(t.Context())
		if len(records) != 4 || string(records[0].Fields) != `{"number":5}` || records[0].Level != slog.LevelWarn || records[1].Message != "7" {
			t.Errorf("%v, %s", messages(records), records[0].Fields)
		}
		// Who continues after the note gets what comes after it.
		position, ok := l.After(l.ID(records[0]))
		again, _ := l.Follow(position, Filter{}).Next(t.Context())
		if diff := cmp.Diff([]string{"7", "8", "9"}, messages(again)); diff != "" || !ok {
			t.Error(diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := reader.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLog_After(t *testing.T) {
	t.Parallel()
	l := newLog(9, 9, "boot")
	log := logger(l, discard, false)
	for i := range 6 {
		log.Log(t.Context(), slog.Level(-4*(i%2)), fmt.Sprint(i))
	}
	records := l.Last(9, Filter{Level: slog.LevelDebug})
	for i := range records {
		at, ok := l.After(l.ID(records[i]))
		v := l.view(at, true)
		var rest []*Record
		for r := v.oldest(); r != nil; r = v.oldest() {
			rest = append(rest, r)
		}
		if want := messages(records[i+1:]); !ok || v.lost > 0 || !cmp.Equal(want, messages(rest)) {
			t.Errorf("after %s: %v, want %v", l.ID(records[i]), messages(rest), want)
		}
	}
	for id, want := range map[string]bool{"other-7-8": true, "boot-1": false, "": false, "boot-x-1": false, "boot--1-1": false, "boot-99-99": true} {
		at, ok := l.After(id)
		if ok != want || id == "other-7-8" && at != (Position{}) {
			t.Errorf("%q: %v, %v", id, at, ok)
		}
	}
}

// counted is a source that counts how often it is asked.
type counted struct{ asked int }

func (c *counted) Attrs() []slog.Attr {
	c.asked++
	return []slog.Attr{slog.String("model", "a/b"), slog.String("said", "Bearer abc.def-ghi")}
}

// A record with a source costs nothing but itself until somebody reads its fields.
func TestRecord_IsEncodedWhenItIsRead(t *testing.T) {
	t.Parallel()
	l, source := New(), &counted{}
	l.Add(&Record{Level: slog.LevelDebug, Message: "ended", Model: "a/b", Source: source})
	records := l.Last(9, Filter{Level: slog.LevelDebug, Models: []string{"a/b"}})
	if len(records) != 1 || source.asked != 0 {
		t.Fatalf("%d records; the source was asked %d times", len(records), source.asked)
	}
	if got, want := string(records[0].Object()), `{"model":"a/b","said":"Bearer …"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&Record{}).Object(); got != nil {
		t.Errorf("a record without fields has %s", got)
	}
}

// A request's id is added once, whoever adds it, and costs one allocation.
func TestWithRequest(t *testing.T) {
	ctx := WithRequest(t.Context(), "req_1")
	if again := WithRequest(ctx, "req_1"); again != ctx {
		t.Error("it is added twice")
	}
	other, cancel := context.WithCancel(WithRequest(ctx, "req_2"))
	defer cancel()
	if got := RequestOf(other); got != "req_2" {
		t.Errorf("the id is %q", got)
	}
	if got := RequestOf(t.Context()); got != "" {
		t.Errorf("a context without one has the id %q", got)
	}
	parent := t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = WithRequest(parent, "req_1") }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A reader that begins before the newest records gets just these, in small portions, though one ring has lost much and the other nothing.
func TestReader_TakesPortions(t *testing.T) {
	t.Parallel()
	l := newLog(500, 200, "boot")
	log := logger(l, discard, false)
	for i := range 1000 {
		log.Log(t.Context(), slog.Level(-4*min(1, i%4)), fmt.Sprint(i)) // 250 and 750
	}
	for name, f := range map[string]Filter{"all": {Level: slog.LevelDebug}, "those above debug": {}, "none": {Level: slog.LevelError}} {
		for _, n := range []int{0, 1, 70, 9999} {
			want := messages(l.Last(n, f))
			var got []string
			for reader := (&Reader{l, f, l.Before(n, f)}); len(got) < len(want); {
				records := reader.take(l.view(reader.at, f.isVerbose()))
				if len(records) == 0 || len(records) > mostAtOnce {
					t.Fatalf("%s, %d: %d records at once, after %d", name, n, len(records), len(got))
				}
				got = append(got, messages(records)...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %d: %s", name, n, diff)
			}
		}
	}
	reader := &Reader{l, Filter{Level: slog.LevelDebug}, Position{}}
	var lost int
	for range 450/mostAtOnce + 1 {
		for _, r := range reader.take(l.view(reader.at, true)) {
			if r.Logger == "log" {
				lost++
			}
		}
	}
	if lost != 1 || reader.at != l.next {
		t.Errorf("%d notes of what is lost; the reader is at %v of %v", lost, reader.at, l.next)
	}
}
