package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// home is a server whose states are saved, and which may be started again.
type home struct {
	*Supervisor
	t     *testing.T
	fake  *fakeengine.Engine
	store *warm.Store
	log   logged
	dir   string // of the store
	spec  *schedule.Spec
	saves time.Duration // SaveAfter
	token time.Duration // that a token of a prompt takes
	wrap  func(process.Program) process.Program
}

const (
	soon  = time.Millisecond
	later = time.Hour
)

// newHome starts a server whose model has the given number of slots. States are saved once they were unused for saveAfter.
func newHome(t *testing.T, script *fakeengine.Script, slots int, saveAfter time.Duration) *home {
	t.Helper()
	h := &home{t: t, fake: fakeengine.Install(t, script), dir: filepath.Join(t.TempDir(), "warm"), saves: saveAfter, token: slowToken}
	h.wrap = func(p process.Program) process.Program { return p }
	model := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(model, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.spec = fakeSpec("m", slots)
	h.spec.ContextLength = 8192
	h.spec.Model.Path, h.spec.Model.Type, h.spec.Slotted = model, catalog.TypeLLM, true
	h.open()
	return h
}

// open starts the server, after a close if it runs.
func (h *home) open() {
	h.t.Helper()
	var err error
	log := slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if h.store, err = warm.Open(h.dir, log); err != nil {
		h.t.Fatal(err)
	}
	h.Supervisor = New(map[string]process.Program{
		"llama_server": h.wrap(LlamaServer(func() (string, error) { return h.fake.Path, nil })),
	}, Options{Options: process.Options{Journal: filepath.Join(h.t.TempDir(), "engines"), Warm: h.store}}, log)
	h.Handle(schedule.Configured{Limits: schedule.Limits{SaveTokens: 300, SaveAfter: h.saves}})
	s, store := h.Supervisor, h.store
	h.t.Cleanup(func() {
		s.Close()
		store.Close()
		if left, _ := filepath.Glob(filepath.Join(h.dir, "launch", "*")); len(left) > 0 {
			h.t.Errorf("folders of launches are left: %v", left)
		}
	})
}

func (h *home) close() {
	h.Close()
	h.store.Close()
}

// slowToken is the time for a token of a prompt. It is long, so that each save and restore pays on a busy machine, too.
const slowToken = 100 * time.Millisecond

// saying returns a message of some hundred tokens.
func saying(name string) string {
	return strings.Repeat(name+" says something ", 150)
}

// saidBy is a demand for a prompt with messages of an owner.
func (h *home) saidBy(owner string, messages ...string) schedule.Demand {
	m := prefix.New(0)
	for _, s := range messages {
		m.Message([]byte(saying(s)))
	}
	return schedule.Demand{Key: "m", Slots: 1, Spec: h.spec, MayLoad: true, Owner: owner, Prompt: m.Chain()}
}

// reply is an answer.
type reply struct {
	text           string
	slot           int
	prompt, cached int
	anew           bool // the engine was asked not to use what its slot holds
}

// say has a conversation go on, and checks that the answer isn't made of a wrong state.
func (h *home) say(owner string, messages ...string) reply {
	h.t.Helper()
	lease, err := h.Acquire(h.t.Context(), h.saidBy(owner, messages...), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer lease.Release()
	return h.answer(lease, messages...)
}

// answer sends the request of a lease.
func (h *home) answer(lease *Lease, messages ...string) (a reply) {
	h.t.Helper()
	var all []map[string]string
	for i, s := range messages {
		all = append(all, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": saying(s)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		h.t.Fatal(err)
	}
	body := lease.Pinned(Payload{Pieces: [][]byte{fmt.Appendf(nil, `{"messages":%s}`, text)}}, func(body [][]byte, slot int, reuse bool) [][]byte {
		a.slot, a.anew = slot, !reuse
		return [][]byte{fmt.Appendf(bytes.TrimSuffix(slices.Concat(body...), []byte("}")), `,"id_slot":%d,"cache_prompt":%t}`, slot, reuse)}
	})
	resp, err := lease.PostPieces(h.t.Context(), "/v1/chat/completions", body)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %s, %v", resp.Status, answer, err)
	}
	usage := gjson.GetBytes(answer, "usage")
	a.text = gjson.GetBytes(answer, "choices.0.message.content").Str
	a.prompt, a.cached = int(usage.Get("prompt_tokens").Int()), int(usage.Get("prompt_tokens_details.cached_tokens").Int())
	body.Used(schedule.Use{
		Prompt: a.prompt, Cached: a.cached, Completion: int(usage.Get("completion_tokens").Int()),
		PromptTime: time.Duration(a.prompt-a.cached) * h.token,
	})
	if a.text != "Hello from the fake engine." {
		h.t.Errorf("the answer is %q", a.text)
	}
	lease.Answered()
	return a
}

// unload ends the instance.
func (h *home) unload() {
	h.t.Helper()
	if err := h.Unload(h.t.Context(), "m"); err != nil {
		h.t.Fatal(err)
	}
}

// kept waits until n states are kept.
func (h *home) kept(n int) {
	h.t.Helper()
	testkit.Eventually(h.t, fmt.Sprintf("%d states are kept; there are %+v", n, h.store.List()), func() bool { return len(h.store.List()) == n })
}

// counts are what the store has counted for the model.
func (h *home) counts() warm.Counts {
	for _, c := range h.store.Counts() {
		return c
	}
	return warm.Counts{}
}

// acted returns the actions on slots that engines were asked for, in order.
func (h *home) acted() (all []string) {
	for _, ev := range h.fake.Events() {
		if ev.Kind == fakeengine.Acted {
			all = append(all, ev.Reason)
		}
	}
	return all
}
