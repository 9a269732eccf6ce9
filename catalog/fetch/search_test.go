package fetch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// withShelf adds repositories to a world's hub: the world's own, and others that a search may find.
func withShelf(w *world) {
	w.hub.Describe(tiny, fakehub.Card{Downloads: 50, Likes: 3, Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	add := func(repo string, card fakehub.Card, files ...string) {
		all := fakehub.Files{"README.md": fakehub.Text("hello")}
		for i, name := range files {
			all[name] = fakehub.Random(uint64(i), int64(1000*(i+1)))
		}
		w.hub.Add(repo, all)
		w.hub.Describe(repo, card)
	}
	add("acme/tiny-large-GGUF", fakehub.Card{Downloads: 900}, "a-Q4_K_M.gguf", "a-Q8_0.gguf")
	add("acme/tiny-picture-GGUF", fakehub.Card{Downloads: 9000, Task: "text-to-image"}, "p-Q4_0.gguf")
	add("acme/tiny-words", fakehub.Card{Downloads: 8000, Tags: []string{"gguf"}}) // says so, and has none
	add("acme/tiny-mlx", fakehub.Card{Downloads: 700, Tags: []string{"mlx"}}, "config.json", "model.safetensors")
	add("Qwen/Qwen3-4B-GGUF", fakehub.Card{Downloads: 5, Gated: "auto"}, "Qwen3-4B-Q4_K_M.gguf")
	add("acme/qwen3-4b-tuned-GGUF", fakehub.Card{Downloads: 100_000}, "q-Q5_K_M.gguf")
}

func names(results []hub.Result) []string {
	var all []string
	for _, r := range results {
		all = append(all, fmt.Sprintf("%s %s %d %v", r.Name, r.Quantization, r.SizeBytes, r.Fits))
	}
	return all
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*world)
		query  hub.Query
		want   []string
	}{
		"most downloaded first, and what can be run": {
			nil, hub.Query{Words: "tiny"}, []string{"acme/tiny-large-GGUF Q4_K_M 1000 true", fmt.Sprintf("acme/tiny-GGUF Q4_K_M %d true", tinySize)},
		},
		"in any case and order": {nil, hub.Query{Words: "  LARGE   tiny"}, []string{"acme/tiny-large-GGUF Q4_K_M 1000 true"}},
		"as many as are wanted": {nil, hub.Query{Words: "tiny", Limit: 1}, []string{"acme/tiny-large-GGUF Q4_K_M 1000 true"}},
		"well-known ones first": {
			nil, hub.Query{Words: "qwen3-4b"}, []string{"qwen/qwen3-4b Q4_K_M 1000 true", "acme/qwen3-4b-tuned-GGUF Q5_K_M 1000 true"},
		},
		"by the name of a well-known one": {nil, hub.Query{Words: "qwen/qwen3-4b"}, []string{"qwen/qwen3-4b Q4_K_M 1000 true"}},
		"what doesn't fit": {
			func(w *world) { w.opts.Memory = func() int64 { return 1 << 20 } },
			hub.Query{Words: "tiny"},
			[]string{"acme/tiny-large-GGUF Q4_K_M 1000 true", fmt.Sprintf("acme/tiny-GGUF Q4_K_M %d false", tinySize)},
		},
		"another format": {
			func(w *world) {
				w.opts.Formats = func() []catalog.Format { return []catalog.Format{catalog.FormatMLX} }
			},
			hub.Query{Words: "tiny"},
			[]string{"acme/tiny-mlx  3000 true"},
		},
		"what may be seen": {
			nil,
			hub.Query{Words: "tiny", May: func(folder string) bool { return folder == "acme/tiny-GGUF" }},
			[]string{fmt.Sprintf("acme/tiny-GGUF Q4_K_M %d true", tinySize)},
		},
		"what the hub doesn't say": {
			func(w *world) { w.hub.Fault(fakehub.Fault{Path: "/tree/", Status: http.StatusForbidden}) },
			hub.Query{Words: "large"},
			[]string{"acme/tiny-large-GGUF  -1 true"},
		},
		"nothing": {nil, hub.Query{Words: "zebra"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.opts.Formats = func() []catalog.Format { return []catalog.Format{catalog.FormatGGUF} }
			withShelf(w)
			if tt.change != nil {
				tt.change(w)
			}
			found, err := w.open().Search(t.Context(), tt.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSearch_TellsWhatTheHubSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withShelf(w)
	found, err := w.open().Search(t.Context(), hub.Query{Words: "tiny-gguf"})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	want := hub.Result{
		Name: tiny, Repo: tiny, Hub: w.hub.URL, Folder: tiny, Downloads: 50, Likes: 3, Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Format: catalog.FormatGGUF, Quantization: "Q4_K_M", SizeBytes: tinySize, Fits: true,
	}
	if diff := cmp.Diff(want, found[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	known, err := w.jobs.Search(t.Context(), hub.Query{Words: "qwen3-4b", Limit: 1})
	if err != nil || len(known) != 1 || !known[0].IsWellKnown || !known[0].Gated || known[0].Downloads != 5 {
		t.Errorf("%+v, %v", known, err)
	}
}

// Models of a second hub have its URL as their name. The token of each goes to it alone.
func TestSearch_OfSeveralHubs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := fakehub.Start(t)
	second.Add("acme/tiny-other-GGUF", fakehub.Files{"o-Q4_K_M.gguf": fakehub.Random(1, 7)})
	w.hub.RequireToken("first")
	second.RequireToken("second")
	w.opts.Hubs = []hub.Config{{URL: w.hub.URL, Token: "first"}, {URL: second.URL, Token: "second"}}
	want := []string{fmt.Sprintf("acme/tiny-GGUF Q4_K_M %d true", tinySize), second.URL + "/acme/tiny-other-GGUF Q4_K_M 7 true"}
	found, err := w.open().Search(t.Context(), hub.Query{Words: "tiny"})
	if diff := cmp.Diff(want, names(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for server, token := range map[*fakehub.Hub]string{w.hub: "Bearer first", second: "Bearer second"} {
		for _, r := range server.Requests() {
			if r.Token != token {
				t.Errorf("%s got the token %q", r.Path, r.Token)
			}
		}
	}
	second.Kill()
	if found, err = w.jobs.Search(t.Context(), hub.Query{Words: "tiny"}); len(found) != 1 || err != nil {
		t.Errorf("without the second: %v, %v", names(found), err)
	}
}

func TestSearch_Errors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault fakehub.Fault
		words string
		kind  hub.Kind
		says  string
	}{
		"no words":        {fakehub.Fault{}, " \n", hub.Invalid, "some words"},
		"a control":       {fakehub.Fault{}, "a\x1b[2J", hub.Invalid, "some words"},
		"too many words":  {fakehub.Fault{}, strings.Repeat("tiny ", 50), hub.Invalid, "some words"},
		"no such search":  {fakehub.Fault{Path: "/api/models", Status: 404}, "tiny", hub.HubFailed, "has no search"},
		"refused":         {fakehub.Fault{Path: "/api/models", Status: 401}, "tiny", hub.Denied, "a token"},
		"broken":          {fakehub.Fault{Path: "/api/models", Status: 500}, "tiny", hub.HubFailed, "try again later"},
		"busy":            {fakehub.Fault{Path: "/api/models", Status: 429, Header: map[string]string{"Retry-After": "3600"}}, "tiny", hub.Busy, "too many requests"},
		"no hub's answer": {fakehub.Fault{Path: "/api/models", Redirect: "/acme/tiny-GGUF/resolve/main/README.md"}, "tiny", hub.HubFailed, "Check the hub's URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.fault.Path != "" {
				w.hub.Fault(tt.fault)
			}
			_, err := w.open().Search(t.Context(), hub.Query{Words: tt.words})
			if kindOf(err) != tt.kind || !strings.Contains(fmt.Sprint(err), tt.says) || strings.Contains(fmt.Sprint(err), "the search for \"") && tt.kind == hub.HubFailed && name == "no such search" {
				t.Errorf("%v", err)
			}
		})
	}
}

// A hub that hangs costs a search its time, and not more.
func TestSearch_OfAHubThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tune.Search = 50 * time.Millisecond
	w.hub.Fault(fakehub.Fault{Path: "/api/models", StallAtOnce: true})
	if _, err := w.open().Search(t.Context(), hub.Query{Words: "tiny"}); kindOf(err) != hub.HubFailed || !strings.Contains(fmt.Sprint(err), "within 50ms") {
		t.Errorf("%v", err)
	}
}

// What a hub says is of another kind than it should be, or larger than anything.
func TestSearch_OfAHubThatLies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ list, tree, says string }{
		"no list":      {`{"error":"x"}`, `[]`, "another kind of value (object)"},
		"a number":     {`[{"id":"a/b","downloads":1e999}]`, `[]`, "another kind of value (number 1e999)"},
		"a size":       {`[{"id":"a/b"}]`, `[{"type":"file","path":"a-Q4_K_M.gguf","size":9223372036854775807}]`, ""},
		"many numbers": {`[{"id":"a/b","downloads":-9,"likes":-1}]`, `[{"type":"file","path":"a-Q4_K_M.gguf","size":35184372088833}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				said := tt.list
				if strings.Contains(r.URL.Path, "/tree/") {
					said = tt.tree
				}
				_, _ = rw.Write([]byte(said))
			}))
			t.Cleanup(server.Close)
			w := newWorld(t)
			w.opts.Hubs = []hub.Config{{URL: server.URL}}
			found, err := w.open().Search(t.Context(), hub.Query{Words: "tiny"})
			if tt.says != "" {
				if kindOf(err) != hub.HubFailed || !strings.Contains(fmt.Sprint(err), tt.says) || strings.Contains(fmt.Sprint(err), "struct") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || len(found) != 1 || found[0].SizeBytes != -1 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free := int64(10 << 30)
	w.opts.Free = func(string) (int64, error) { return free, nil }
	preview := func(model string) Preview {
		t.Helper()
		p, err := w.open().Preview(t.Context(), Request{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, model := range []string{tiny, tiny + "@q4_k_m", w.hub.URL + "/" + tiny} {
		p := preview(model)
		if p.ID != "" || p.State != Downloading || p.TotalBytes != tinySize || p.Left != tinySize || !p.FitsDisk || p.Free != free || p.Quantization != "Q4_K_M" {
			t.Errorf("%s: %+v", model, p)
		}
		if diff := cmp.Diff([]string{tiny + "/" + tinyFile}, p.Files); diff != "" {
			t.Error(diff)
		}
	}
	if len(w.jobs.List()) > 0 || w.hub.Sent(tinyFile) > 0 {
		t.Error("something is downloaded")
	}
	free = 1 << 20
	if p := preview(tiny); p.FitsDisk || p.Free != free {
		t.Errorf("a full disk: %+v", p)
	}
	free = 10 << 30
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 100 << 10})
	job := w.start(tiny)
	if p := preview(tiny); p.ID != job.ID {
		t.Errorf("while it is downloaded: %+v", p)
	}
	w.hub.Mend()
	w.await(job.ID, Job.Ended)
	if p := preview(tiny); p.State != AlreadyDownloaded {
		t.Errorf("once it is there: %+v", p)
	}
}

func TestStart_WithAQuantizationInTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add(tiny, fakehub.Files{"t-Q4_K_M.gguf": fakehub.Random(1, 100), "t-Q8_0.gguf": fakehub.Random(2, 200)})
	job, err := w.open().Start(t.Context(), Request{Model: tiny + "@q8_0"})
	if err != nil {
		t.Fatal(err)
	}
	done := w.await(job.ID, Job.Ended)
	if diff := cmp.Diff([]string{tiny + "/t-Q8_0.gguf"}, done.Files); diff != "" || done.State != Completed || done.Page() != w.hub.URL+"/"+tiny || done.Revision == "" {
		t.Errorf("%+v (-want +got):\n%s", done, diff)
	}
	if again, err := w.jobs.Start(t.Context(), Request{Model: tiny + "@q8_0"}); err != nil || again.State != AlreadyDownloaded {
		t.Errorf("%+v, %v", again, err)
	}
	for model, says := range map[string]string{tiny + "@": "one quantization", tiny + "@a@b": "one quantization", tiny + "@q2_k": "There are: Q4_K_M"} {
		if _, err := w.jobs.Start(t.Context(), Request{Model: model}); kindOf(err) != hub.Invalid || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s: %v", model, err)
		}
	}
}
