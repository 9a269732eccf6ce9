package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Callers at the same time ask the executable once, and one that leaves spoils it for nobody.
func TestProcess_ProbedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, calls, gate := filepath.Join(dir, "llama-server"), filepath.Join(dir, "calls"), filepath.Join(dir, "gate")
	script := fmt.Sprintf(`#!/bin/sh
echo "$@" >>%[1]s
while ! test -e %[2]s; do sleep 0.01; done
test "$1" = --version && echo "version: 1 (abc)"
exit 0
`, calls, gate)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Process{Locate: func() (string, error) { return path, nil }}
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := p.Probe(ctx)
		first <- err
	}()
	asked := func() string {
		text, _ := os.ReadFile(calls)
		return string(text)
	}
	testkit.Eventually(t, "the first asks", func() bool { return asked() != "" })
	var waiting errgroup.Group
	for range 8 {
		waiting.Go(func() error {
			build, err := p.Probe(t.Context())
			if err == nil && build.Version != "b1" {
				err = fmt.Errorf("version %q", build.Version)
			}
			return err
		})
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of the first", err)
	}
	testkit.Eventually(t, "another asks", func() bool { return strings.Count(asked(), "--version") == 2 })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
	if got, want := asked(), "--version\n--version\n--help\n"; got != want {
		t.Errorf("asked:\n%swant\n%s", got, want)
	}
}

func TestProcess_RootOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/home/runtimes/b1/bin/llama-server": "/home/runtimes/b1",
		"/home/runtimes/b1/llama-server":     "/home/runtimes/b1",
		"/home/runtimes/llama-server":        "",
		"/home/llama-server":                 "",
		"/usr/bin/llama-server":              "",
	} {
		if got := (&Process{Runtimes: "/home/runtimes"}).rootOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// An executable elsewhere belongs to a runtime if that says so: then the sandbox lets it use the libraries there.
func TestProcess_RootOfAnotherFolder(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(dir, "lib", "runtimes", "llama.cpp-b1-cpu")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(installed, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/llama-server", "")
	write("bin/other", "")
	write("runtime.json", `{"engine": "llama.cpp", "executable": "bin/llama-server"}`)
	if err := os.Symlink(filepath.Join(installed, "bin", "llama-server"), filepath.Join(dir, "llama-server")); err != nil {
		t.Fatal(err)
	}
	p := &Process{Runtimes: filepath.Join(dir, "home", "runtimes")}
	for path, want := range map[string]string{
		filepath.Join(dir, "llama-server"):              installed, // a link to it
		filepath.Join(installed, "bin", "llama-server"): installed,
		filepath.Join(installed, "bin", "other"):        "",
		filepath.Join(dir, "nothing"):                   "",
	} {
		if got := p.rootOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	write("runtime.json", `{"engine": "llama.cpp", "executable": "../../../llama-server"}`)
	if got := p.rootOf(filepath.Join(dir, "llama-server")); got != "" {
		t.Errorf("the root of an executable outside of the runtime is %q", got)
	}
}

// Builds that refuse what newer ones need are given what they know, and run.
func TestProcess_OldBuilds(t *testing.T) {
	t.Parallel()
	old := fakeengine.Script{
		NoChildProtocol: true,
		NoSockets:       true,
		Version:         "4242 (abcdef)",
		RemoveFlags: []string{
			"-fa", "--flash-attn", "-cram", "--cache-ram", "-lv", "--verbosity", "--log-verbosity", "--offline", "--spec-type", "--list-devices",
			"--ui", "--webui", "--no-ui", "--no-webui", "-ctxcp", "--ctx-checkpoints", "--swa-checkpoints",
		},
		AddFlags: []fakeengine.Flag{
			{Names: []string{"-fa", "--flash-attn"}, Help: "enable Flash Attention (default: disabled)"},
			{Names: []string{"-lv", "--verbosity", "--log-verbosity"}, Hint: "N", Help: "Set the verbosity threshold."},
			{Names: []string{"--no-webui"}, Help: "Disable the Web UI (default: enabled)"},
		},
		Stop: fakeengine.Stop{TermWorks: true},
	}
	silent := old
	silent.Silent = true
	for name, script := range map[string]fakeengine.Script{"read by its log": old, "asked, since it says nothing": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeengine.Install(t, &script)
			program := &Process{Locate: func() (string, error) { return fake.Path, nil }}
			s := supervisor.New(map[string]process.Program{"llama_server": program},
				supervisor.Options{Options: process.Options{Journal: filepath.Join(t.TempDir(), "engines")}}, slog.New(slog.DiscardHandler))
			defer s.Close()
			spec := specOf("m", 1)
			spec.Model.Type, spec.FlashAttention, spec.BatchSize, spec.PromptCache, spec.Checkpoints = catalog.TypeLLM, schedule.On, 256, 1<<30, 3
			spec.Draft = &catalog.Model{Key: "d", Path: "/models/d.gguf"}
			info, err := s.Load(t.Context(), spec, nil)
			if err != nil || info.Build.Version != "b4242" {
				t.Fatalf("build %+v, error %v", info.Build, err)
			}
			lease, err := s.Acquire(t.Context(), schedule.Demand{Key: "m", Spec: spec}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release()
			answer, err := lease.Post(t.Context(), "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`))
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("answer %+v, error %v", answer, err)
			}
			answer.Body.Close()
			started := fake.Wait(t, fakeengine.Is(fakeengine.Started))
			if line := strings.Join(started.Argv, " "); !strings.HasSuffix(line, "--no-webui -b 256 -ub 256 -fa -md /models/d.gguf") {
				t.Errorf("arguments %s", line)
			}
		})
	}
}
