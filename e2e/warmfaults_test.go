package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// startOrdinary starts lmcaddy for a user who can't write to every file, as root can.
func startOrdinary(h *harness.Home) *harness.Server {
	config := harness.Config{Port: harness.FreePort(h.T), LM: warmLines, Engine: []string{"parallel 2"}}
	file := h.WriteFile("Caddyfile", config.String())
	h.OwnRuntimes()
	h.BeOrdinary()
	return h.Launch(config.Port, "run", "--config", file)
}

// wantWithoutStates has two models answer in turn where no state can be kept: that costs no request.
func wantWithoutStates(t *testing.T, s *harness.Server) {
	t.Helper()
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	text := talk.Fork().Say(s, "Hello").Text
	for range 2 {
		evict(s)
		if got := talk.Fork().Say(s, "Hello"); got.Text != text || got.Processed != got.Prompt {
			t.Errorf("the answer is %q after %q, and %d of %d tokens were processed", got.Text, text, got.Processed, got.Prompt)
		}
	}
	if files := s.StateFiles(); len(files) > 0 {
		t.Errorf("there are states: %v", files)
	}
	if log := s.Log(); strings.Contains(log, "ended unexpectedly") {
		t.Error("an engine has ended")
	}
}

// TestWarmFaults_AFullDisk: the engine can write no more than a part of a state, as on a full disk.
func TestWarmFaults_AFullDisk(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	const kilobytes = 1024 // a state has three times as many
	script := h.WriteFile("llama-server", fmt.Sprintf("#!/bin/sh\ntrap '' XFSZ\nulimit -f %d\nexec %s \"$@\"\n", 2*kilobytes, realEngine(t, h)))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	s := harness.Start(h, harness.Config{LM: warmLines, Engine: []string{"parallel 2", "path " + script, "sandbox off"}})
	wantWithoutStates(t, s)
	if n := strings.Count(s.Log(), `"level":"warn"`); n == 0 {
		t.Error("nobody is told of it")
	}
	harness.Eventually(t, harness.Patience, "what was written is deleted", func() bool {
		left, err := filepath.Glob(filepath.Join(h.WarmDir(), "launch", "*", "*"))
		return err == nil && len(left) == 0
	})
}

// TestWarmFaults_NoFolder: states can't be kept at all, since a file is in the folder's place.
func TestWarmFaults_NoFolder(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	if err := os.WriteFile(h.WarmDir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startWarm(h)
	wantWithoutStates(t, s)
	if !strings.Contains(s.Log(), h.WarmDir()) {
		t.Error("nobody is told of it")
	}
}

// TestWarmFaults_TheFolderBecomesReadOnly while engines run.
func TestWarmFaults_TheFolderBecomesReadOnly(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	s := startOrdinary(h)
	talk := harness.NewTalk(warmModel, harness.Words(1, systemTokens))
	begun := time.Now()
	talk.Fork().Say(s, "Hello")
	h.WaitState(begun)
	for path, mode := range modesBelow(t, h.WarmDir()) {
		if mode.IsDir() {
			if err := os.Chmod(path, 0o500); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.Chmod(path, 0o700) }() // so that it can be deleted
		}
	}
	other := harness.NewTalk(warmModel, harness.Words(2, systemTokens))
	text := other.Fork().Say(s, "Hello").Text
	evict(s)
	if got := other.Fork().Say(s, "Hello"); got.Text != text {
		t.Errorf("the answer is %q, and was %q", got.Text, text)
	}
	if strings.Contains(s.Log(), "ended unexpectedly") {
		t.Error("an engine has ended")
	}
}
