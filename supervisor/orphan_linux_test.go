package supervisor

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// serverVariable makes the test binary a server of its own, which the test kills: "engine's path|journal"; the engine has a GPU and runs in
// a sandbox if "|confined" follows.
const serverVariable = "LMCADDY_TEST_SERVER"

// serveIfTold loads a model, says so, and waits for its end.
func serveIfTold() {
	path, journal, ok := strings.Cut(os.Getenv(serverVariable), "|")
	if !ok {
		return
	}
	journal, confined := strings.CutSuffix(journal, "|confined")
	engine := LlamaServer(func() (string, error) { return path, nil })
	if confined {
		engine = withGPU{writer{engine, func() string { return filepath.Dir(path) }}}
	}
	s := New(map[string]process.Program{"llama_server": engine}, Options{Options: process.Options{Journal: journal}}, slog.New(slog.DiscardHandler))
	spec := fakeSpec("m", 1)
	spec.Unconfined = !confined
	if _, err := s.Load(context.Background(), spec, nil); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("loaded\n")
	select {}
}

// A server that is killed takes its engine with it; what its engine has started is ended when the next server starts.
func TestEndLeftovers_EndsWhatAnEngineOfAKilledServerHasStarted(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{"without a sandbox": "", "in a sandbox with a GPU": "|confined"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeengine.Install(t, &fakeengine.Script{Grandchild: &fakeengine.Grandchild{Setsid: true}, Stop: fakeengine.Stop{IgnoreEOF: true}})
			journal := filepath.Join(t.TempDir(), "engines")
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), serverVariable+"="+fake.Path+"|"+journal+mode)
			out, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "loaded\n" {
				t.Fatalf("the server says %q, %v", line, err)
			}
			engine, child := fake.Wait(t, fakeengine.Is(fakeengine.Started)), fake.Wait(t, fakeengine.Is(fakeengine.Forked))
			living, _ := start(t, &fakeengine.Script{Grandchild: &fakeengine.Grandchild{Setsid: true}})
			works(t, living)
			_ = server.Process.Kill()
			_ = server.Wait()
			fake.WaitGone(t, engine.PID)
			if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 2 || !fakeengine.Alive(child.PID) {
				t.Fatalf("the crash left %v in the journal, its engine's child alive: %t", files, fakeengine.Alive(child.PID))
			}
			process.EndLeftovers(t.Context(), journal, slog.New(slog.DiscardHandler))
			if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 0 || fakeengine.Alive(child.PID) {
				t.Errorf("left: %v in the journal, the engine's child: %t", files, fakeengine.Alive(child.PID))
			}
			works(t, living) // of another journal
		})
	}
}

func TestFault_WhatAnEngineHasForkedAwayIsEndedWithIt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *Supervisor, pid int){
		"it is unloaded": func(t *testing.T, s *Supervisor, _ int) {
			if err := s.Unload(t.Context(), "m"); err != nil {
				t.Error(err)
			}
		},
		"it crashes": func(t *testing.T, s *Supervisor, pid int) {
			kill(t, pid)
			testkit.Eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// It also holds the engine's output open.
			s, fake := start(t, &fakeengine.Script{Grandchild: &fakeengine.Grandchild{Setsid: true, HoldPipes: true}})
			lease := works(t, s)
			child := fake.Wait(t, fakeengine.Is(fakeengine.Forked))
			end(t, s, lease.Instance.PID)
			if fakeengine.Alive(child.PID) {
				t.Error("what it has forked is still there")
			}
		})
	}
}
