package servers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// started returns how many processes have written themselves into a file.
func started(t *testing.T, file string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(content), "\n")
}

func TestStdio_ManyUsersOfOneProcess(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	p := newPool(t, map[string]any{"one": program("library", "COUNT="+count)})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			s, err := p.Plugin(t.Context(), "one")
			if err != nil {
				t.Error(err, causeOf(err))
				return
			}
			defer s.Release()
			tools, err := s.Tools(t.Context())
			if err != nil || len(tools) != 3 {
				t.Error(tools, err)
			}
			got, err := s.Call(t.Context(), "echo", json.RawMessage(`{"text":"hello"}`))
			if err != nil || string(got.Content) != `[{"type":"text","text":"hello"}]` {
				t.Error(string(got.Content), err)
			}
		})
	}
	wg.Wait()
	if n := started(t, count); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}

func TestStdio_AHugeResultLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	p := newPool(t, map[string]any{"one": program("script")})
	s := plugin(t, p, "one")
	huge := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), "huge", nil)
		huge <- err
	}()
	for range 20 {
		got, err := s.Call(t.Context(), "any", nil)
		if err != nil || string(got.Content) != `[{"type":"text","text":"done"}]` {
			t.Fatal(string(got.Content), err, causeOf(err))
		}
	}
	refused(t, <-huge, "more than 4 MiB")
	if _, err := s.Call(t.Context(), "any", nil); err != nil {
		t.Error(err)
	}
}

func TestStdio_WhatNeverEndsIsEnded(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	p := newPool(t, map[string]any{"one": program("script", "COUNT="+count)})
	s := plugin(t, p, "one")
	nearlySpent(s)
	_, err := s.Call(t.Context(), "endless", nil)
	refused(t, err, "It didn't stop sending")
	if _, err := s.Call(t.Context(), "any", nil); err != nil {
		t.Error(err, causeOf(err))
	}
	if n := started(t, count); n != 2 {
		t.Errorf("%d processes were started, want another after the first was ended", n)
	}
}

func TestStdio_DiesInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	p := newPool(t, map[string]any{"one": program("script", "COUNT="+count)})
	s := plugin(t, p, "one")
	_, err := s.Call(t.Context(), "die", nil)
	refused(t, err, "MCP server 'one' ended; the server's log says why.")
	if cause := causeOf(err).Error(); !strings.Contains(cause, "9") || !strings.Contains(cause, "out of luck") {
		t.Errorf("the cause is %q, want one with the status 9 and the last words", cause)
	}
	if n := started(t, count); n != 1 {
		t.Errorf("%d processes were started: the call was repeated", n)
	}
	if _, err := s.Call(t.Context(), "any", nil); err != nil {
		t.Fatal(err, causeOf(err))
	}
	if n := started(t, count); n != 2 {
		t.Errorf("%d processes were started, want 2", n)
	}
}

func TestStdio_CancelingTellsTheServer(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen")
	p := newPool(t, map[string]any{"one": program("script", "SEEN="+seen)})
	s := plugin(t, p, "one")
	sees := func(what string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			content, err := os.ReadFile(seen)
			return err == nil && strings.Contains(string(content), what)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "ignore", nil)
		called <- err
	}()
	sees("tools/call ignore")
	cancel()
	if err := <-called; !errors.Is(err, context.Canceled) {
		t.Fatalf("a canceled call fails with %v", err)
	}
	sees("notifications/cancelled")
	if _, err := s.Call(t.Context(), "any", nil); err != nil {
		t.Error(err)
	}
}

// TestStdio_DeafServers calls a server that doesn't even read, with more than a pipe holds.
func TestStdio_DeafServers(t *testing.T) {
	t.Parallel()
	p := newPool(t, map[string]any{"one": program("script")})
	p.Set(Settings{CallTimeout: 100 * time.Millisecond})
	s := plugin(t, p, "one")
	_, err := s.Call(t.Context(), "deaf", nil)
	refused(t, err, "didn't answer within 100ms")
	args, err := json.Marshal(map[string]string{"a": strings.Repeat("x", 5<<20)})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, err = s.Call(t.Context(), "any", args)
		if cause := causeOf(err); errors.Is(cause, errStarve) || errors.Is(cause, errHung) {
			return
		}
		refused(t, err, "didn't answer within 100ms")
	}
	t.Error("nobody noticed that the server doesn't read")
}

// TestStdio_AHungServerIsStartedAgain calls a server that hangs: it is ended when it doesn't answer a ping either.
func TestStdio_AHungServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	p := newPool(t, map[string]any{"one": program("script", "COUNT="+count)})
	p.connect = (&connector{
		log: p.log, timeout: p.callTimeout, private: p.privateHosts, startup: startTimeout, patience: 100 * time.Millisecond,
	}).connect
	p.Set(Settings{CallTimeout: 50 * time.Millisecond})
	s := plugin(t, p, "one")
	_, err := s.Call(t.Context(), "deaf", nil)
	refused(t, err, "didn't answer within 50ms")
	p.Set(Settings{CallTimeout: time.Minute}) // or the next one might be slow to answer, too
	testkit.Eventually(t, "an answer", func() bool {
		_, err := s.Call(t.Context(), "any", nil)
		return err == nil
	})
	if n := started(t, count); n != 2 {
		t.Errorf("%d processes were started, want 2", n)
	}
}

func TestStdio_FailuresToStart(t *testing.T) {
	t.Parallel()
	p := newPool(t, map[string]any{
		"missing":   map[string]any{"command": "/no/such/secret", "args": []string{"--key=secret"}},
		"directory": map[string]any{"command": "sh", "cwd": "/no/such/secret"},
		"exits":     program("exit", "KEY=secret"),
		"garbage":   program("garbage"),
		"hangs":     program("hang"),
	})
	c := &connector{
		log: p.log, timeout: p.callTimeout, private: p.privateHosts,
		handshake: handshakeTimeout, startup: 500 * time.Millisecond,
	}
	for label, cause := range map[string]string{
		"missing": "no such file", "directory": "directory", "exits": "no license found", "garbage": "no answer within", "hangs": "no answer within",
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			configs, err := p.Plugins()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(configs, func(c Config) bool { return c.Label == label })
			short := *c
			if label == "exits" {
				short.startup = startTimeout
			}
			one := target{Config: configs[i]}
			_, err = short.connect(t.Context(), one)
			if err == nil {
				t.Fatal("no error")
			}
			message := one.describe(err, false)
			if want := "The MCP server '" + label + "' could not be started; the server's log says why."; message.Message != want {
				t.Errorf("the message is %q, want %q", message.Message, want)
			}
			if runtime.GOOS != "windows" && !strings.Contains(message.Cause.Error(), cause) {
				t.Errorf("the cause is %q, want one with %q", message.Cause, cause)
			}
		})
	}
}

func TestStdio_Environment(t *testing.T) {
	t.Setenv("LMCADDY_SECRET", "x")
	t.Setenv("LC_TIME", "C")
	t.Setenv("PATH", os.Getenv("PATH"))
	got := environ(map[string]string{"B": "2", "A": "1"})
	var names []string
	for _, variable := range got {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, strings.ToUpper(name))
	}
	if !slices.Contains(names, "PATH") || !slices.Contains(names, "LC_TIME") || slices.Contains(names, "LMCADDY_SECRET") {
		t.Errorf("the environment has %v", names)
	}
	if diff := cmp.Diff([]string{"A=1", "B=2"}, got[len(got)-2:]); diff != "" {
		t.Error(diff)
	}
}

func TestPatientWriter(t *testing.T) {
	t.Parallel()
	r, pipe := io.Pipe()
	starved := 0
	w := newPatientWriter(pipe, func() { starved++ })
	for range 16 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the first mebibytes may be on their way already
		if _, err := w.Write(make([]byte, maxWaiting)); err != nil {
			t.Fatal(err)
		}
	}
	if starved == 0 {
		t.Error("nobody noticed that nobody reads")
	}
	if _, err := io.ReadFull(r, make([]byte, maxWaiting)); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	_ = r.Close()
	<-w.done
}

func TestIsFetcher(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"npx": true, "/usr/local/bin/uvx": true, "npx.cmd": true, "UV.exe": true, "docker": true,
		"node": false, "/opt/npx/server": false, "python3": false,
	} {
		if got := isFetcher(command); got != want {
			t.Errorf("%s: %t", command, got)
		}
	}
}
