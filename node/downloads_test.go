package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
)

const shippedFile = shipped + "/tinychat-f16.gguf"

// withHub is a node in a new home, which downloads from a fake hub. That has the shipped model, as acme/Tiny-GGUF and as what
// the catalog's meta/llama-3.2-1b-instruct is.
func withHub(t *testing.T) (*Node, *fakehub.Hub) {
	t.Helper()
	server := fakehub.Start(t)
	model, err := os.ReadFile(shippedFile)
	if err != nil {
		t.Fatal(err)
	}
	server.Add("acme/Tiny-GGUF", fakehub.Files{"tiny-Q4_K_M.gguf": fakehub.Bytes(model)})
	server.Add("bartowski/Llama-3.2-1B-Instruct-GGUF", fakehub.Files{"Llama-3.2-1B-Instruct-Q4_K_M.gguf": fakehub.Bytes(model)})
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{Hubs: []hub.Config{{URL: server.URL}}})
	return n, server
}

func jobsOf(t *testing.T, n *Node) *fetch.Jobs {
	t.Helper()
	jobs, err := n.Downloads.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func startDownload(t *testing.T, n *Node, model string) fetch.Job {
	t.Helper()
	job, err := jobsOf(t, n).Start(t.Context(), fetch.Request{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func awaitDownload(t *testing.T, n *Node, id string) fetch.Job {
	t.Helper()
	updates, stop, err := jobsOf(t, n).Subscribe(id)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var last fetch.Job
	for last = range updates {
	}
	return last
}

// TestDownloads_AModelIsFoundByTheNameItWasAskedBy, and by its others, as soon as the job is completed.
func TestDownloads_AModelIsFoundByTheNameItWasAskedBy(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]struct{ key, others string }{
		"acme/tiny-gguf": {"acme/tiny", "acme/Tiny-GGUF acme/tiny tiny"},
		"Meta/Llama-3.2-1B-Instruct": {
			"meta/llama-3.2-1b-instruct", "llama-3.2-1b-instruct bartowski/llama-3.2-1b-instruct bartowski/Llama-3.2-1B-Instruct-GGUF",
		},
		"bartowski/llama-3.2-1b-instruct-GGUF": {
			"bartowski/llama-3.2-1b-instruct", "meta/llama-3.2-1b-instruct llama-3.2-1b-instruct",
		},
	} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			n, server := withHub(t)
			job := awaitDownload(t, n, startDownload(t, n, asked).ID)
			if job.State != fetch.Completed || n.Downloads.Key(t.Context(), job) != want.key {
				t.Fatalf("%+v is %s", job, n.Downloads.Key(t.Context(), job))
			}
			for _, name := range append(strings.Fields(want.others), asked) {
				if target, err := n.Names.Find(t.Context(), name); err != nil || target.Model.Key != want.key {
					t.Errorf("%s: %s, %v", name, target.Model.Key, err)
				}
			}
			for _, name := range []string{asked, server.URL + "/" + job.Repo, job.Repo} { // whichever it was
				if again := startDownload(t, n, name); again.State != fetch.AlreadyDownloaded {
					t.Errorf("%s: %+v", name, again)
				}
			}
		})
	}
}

// TestDownloads_GoOnWithTheFirstSettings after a restart, since only they say where from.
func TestDownloads_GoOnWithTheFirstSettings(t *testing.T) {
	t.Parallel()
	n, server := withHub(t)
	server.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	job := startDownload(t, n, "acme/tiny-gguf")
	testkit.Eventually(t, "something has come", func() bool {
		now, err := jobsOf(t, n).Get(job.ID)
		return err == nil && now.DownloadedBytes > 0
	})
	again := home.Dir(t.TempDir())
	if err := n.Downloads.close(); err != nil {
		t.Fatal(err)
	}
	n.Downloads.jobs.Store(nil)
	for _, folder := range []string{"models", "downloads"} {
		if err := os.CopyFS(filepath.Join(string(again), folder), os.DirFS(filepath.Join(string(n.Home()), folder))); err != nil {
			t.Fatal(err)
		}
	}
	server.Mend()
	n = open(t, again)
	if _, err := n.Downloads.Jobs(); err == nil {
		t.Error("there are downloads before there are settings")
	}
	push(t, n, 1, Settings{Hubs: []hub.Config{{URL: server.URL}}})
	if done := awaitDownload(t, n, job.ID); done.State != fetch.Completed {
		t.Errorf("%+v", done)
	}
	push(t, n, 2, Settings{}) // without the hub
	if _, err := jobsOf(t, n).Start(t.Context(), fetch.Request{Model: server.URL + "/acme/Tiny-GGUF"}); err == nil {
		t.Error("a hub is known that is configured no more")
	}
}

func TestDownloads_WhyThereAreNone(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	if err := os.WriteFile(n.Home().Downloads(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	push(t, n, 1, Settings{})
	if _, err := n.Downloads.Jobs(); err == nil || !strings.Contains(err.Error(), n.Home().Downloads()) {
		t.Error(err)
	}
	if err := os.Remove(n.Home().Downloads()); err != nil {
		t.Fatal(err)
	}
	push(t, n, 2, Settings{})
	if _, err := n.Downloads.Jobs(); err != nil {
		t.Error(err)
	}
}

// TestDownloads_WhatAnotherProgramHasIsNotFetched: in the hub's own cache, LM Studio's folder and llama.cpp's cache.
func TestDownloads_WhatAnotherProgramHasIsNotFetched(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{
		"LM Studio":      "acme/Tiny-GGUF/tiny-Q4_K_M.gguf",
		"hub's cache":    "models--acme--Tiny-GGUF/snapshots/0123/tiny-Q4_K_M.gguf",
		"llama.cpp":      "acme_Tiny-GGUF_tiny-Q4_K_M.gguf",
		"another's file": "other/Tiny-GGUF/tiny-Q4_K_M.gguf",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, server := withHub(t)
			root := t.TempDir()
			copyTo(t, shippedFile, filepath.Join(root, filepath.FromSlash(place)))
			if name == "llama.cpp" { // whose manifests tell of which repository a file is
				if err := os.WriteFile(filepath.Join(root, "manifest=acme=Tiny-GGUF=latest.json"), []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			push(t, n, 2, Settings{Hubs: []hub.Config{{URL: server.URL}}, ModelsDirs: []string{root}})
			want := fetch.AlreadyDownloaded
			if name == "another's file" {
				want = fetch.Downloading
			}
			if job := startDownload(t, n, "acme/Tiny-GGUF"); job.State != want {
				models, _ := n.Models(t.Context())
				t.Errorf("%+v; there are %+v", job, models)
			}
		})
	}
}

// TestDownloads_TheHubIsNotAskedForWhatIsHere: however it came here, and by whichever of its names.
func TestDownloads_TheHubIsNotAskedForWhatIsHere(t *testing.T) {
	t.Parallel()
	n, server := withHub(t)
	copyTo(t, shippedFile, filepath.Join(n.Home().Models(), "acme", "Tiny-GGUF", "tiny-Q4_K_M.gguf"))
	if err := n.catalog.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func(model, quantization string) (fetch.Job, error) {
		return jobsOf(t, n).Start(t.Context(), fetch.Request{Model: model, Quantization: quantization})
	}
	url := server.URL + "/acme/Tiny-GGUF"
	for _, asked := range [][2]string{{"acme/tiny-gguf", ""}, {url, ""}, {url, "q4_K_M"}, {url + "/blob/main/tiny-Q4_K_M.gguf", ""}} {
		if job, err := start(asked[0], asked[1]); err != nil || job.State != fetch.AlreadyDownloaded {
			t.Errorf("%s: %+v, %v", asked, job, err)
		}
	}
	if asked := server.Requests(); len(asked) > 0 {
		t.Errorf("the hub was asked: %+v", asked)
	}
	for _, asked := range [][2]string{{url, "Q8_0"}, {url + "/blob/main/tiny-Q8_0.gguf", ""}, {url + "/tree/other", ""}} {
		before := len(server.Requests())
		if job, err := start(asked[0], asked[1]); err == nil && job.State == fetch.AlreadyDownloaded || len(server.Requests()) == before {
			t.Errorf("%s: %+v, %v", asked, job, err)
		}
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRemove_NotWhileItIsDownloaded, and only what is the home's.
func TestRemove_NotWhileItIsDownloaded(t *testing.T) {
	t.Parallel()
	n, server := withHub(t)
	server.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	job := startDownload(t, n, "acme/tiny-gguf")
	var used *translate.Error
	if _, err := n.Downloads.Remove(t.Context(), "acme/tiny", anyone); !errors.As(err, &used) || !strings.Contains(err.Error(), job.ID) {
		t.Error(err)
	}
	server.Mend()
	awaitDownload(t, n, job.ID)
	if key, err := n.Downloads.Remove(t.Context(), "Acme/Tiny-GGUF", anyone); err != nil || key != "acme/tiny" {
		t.Error(key, err)
	}
	var missing *catalog.NotFoundError
	if _, err := n.Downloads.Remove(t.Context(), "acme/tiny", anyone); !errors.As(err, &missing) {
		t.Error(err)
	}
	if again := startDownload(t, n, "acme/tiny-gguf"); again.State != fetch.Downloading || again.ID == job.ID {
		t.Errorf("%+v", again)
	}
}

// TestRemove_GoesByNoAlias: what requests are led by isn't what somebody means who deletes.
func TestRemove_GoesByNoAlias(t *testing.T) {
	t.Parallel()
	n := open(t, withModel(t))
	push(t, n, 1, Settings{Log: slog.New(slog.DiscardHandler), Models: map[string]ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"*"}}}})
	if _, err := n.Downloads.Remove(t.Context(), "gpt-4", anyone); err == nil {
		t.Error("the alias's model was removed")
	}
}

// TestRemove_OnlyWhatIsNamed: a name that several variants go by isn't enough.
func TestRemove_OnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	n := open(t, withModel(t))
	copyTo(t, shippedFile, filepath.Join(n.Home().Models(), "acme", "two", "two-a.gguf"))
	copyTo(t, shippedFile, filepath.Join(n.Home().Models(), "acme", "two", "two-b.gguf"))
	push(t, n, 1, Settings{})
	var missing *catalog.NotFoundError
	if _, err := n.Downloads.Remove(t.Context(), "acme/two", anyone); !errors.As(err, &missing) || len(missing.Ambiguous) != 2 {
		t.Errorf("%v", err)
	}
	if key, err := n.Downloads.Remove(t.Context(), "two@two-a", anyone); err != nil || key != "acme/two@two-a" {
		t.Errorf("%s, %v", key, err)
	}
}

func anyone(string) error { return nil }
