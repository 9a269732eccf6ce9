package llamaserver

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/closedport"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// listen returns the address of something that serves connections, one at a time.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func prepare(ctx context.Context, addresses ...string) (*supervisor.Launch, error) {
	spec := specOf("m", 1)
	spec.RPC = addresses
	l := &supervisor.Launch{Spec: spec}
	return l, new(Process).Prepare(ctx, l)
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	free := listen(t, func(conn net.Conn) {
		b := make([]byte, 1)
		if n, err := conn.Read(b); n != 1 || err != nil || b[0] == 14 {
			t.Errorf("a worker was sent %v: %v", b, err)
		}
	})
	_, port, _ := net.SplitHostPort(free)
	l, err := prepare(t.Context(), free, "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{free, free}, l.Workers); diff != "" {
		t.Error(diff)
	}
	if l, err := prepare(t.Context()); err != nil || l.Workers != nil {
		t.Errorf("without workers: %v, %v", l.Workers, err)
	}
}

func TestPrepare_WhatIsWrong(t *testing.T) {
	t.Parallel()
	gone := closedport.Address(t)
	for address, want := range map[string]string{
		gone:                  "no worker listens at " + gone,
		"nowhere.invalid:123": "nowhere.invalid:123 can't be found",
		listen(t, func(conn net.Conn) { _, _ = conn.Write([]byte("SSH-2.0-OpenSSH\r\n")) }): "is no worker",
	} {
		if _, err := prepare(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// A worker that computes for somebody else is known by its silence. While a load waits for it, the load can be stopped.
func TestPrepare_ABusyWorker(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	defer close(held)
	busy := listen(t, func(net.Conn) { <-held })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := prepare(ctx, busy); !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "canceled")) {
		t.Errorf("stopped: %v", err)
	}
	before := time.Now()
	if _, err := prepare(t.Context(), busy); err == nil || !strings.Contains(err.Error(), "computes for another program, hangs, or") {
		t.Errorf("busy: %v", err)
	}
	if took := time.Since(before); took < freeTimeout || took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestCommand_OnWorkers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		help      string
		projector string
		want      []string
	}{
		"":          {"-fit,  --fit [on|off]  whether to adjust\n", "", []string{"--rpc", "10.0.0.3:5,10.0.0.4:6"}},
		"an older":  {"--rpc SERVERS  comma separated\n", "", []string{"--rpc", "10.0.0.3:5,10.0.0.4:6", "-ngl", "999"}},
		"projector": {"--mmproj-offload, --no-mmproj-offload  whether\n--fit [on|off]  x\n", "/p.gguf", []string{"--rpc", "10.0.0.3:5,10.0.0.4:6", "--no-mmproj-offload"}},
	} {
		spec := specOf("m", 1)
		spec.Model.Projector = tt.projector
		spec.RPC = []string{"box:5", "10.0.0.4:6"}
		l := supervisor.Launch{Spec: spec, Workers: []string{"10.0.0.3:5", "10.0.0.4:6"}}
		cmd := new(Process).Command(l, supervisor.Build{Flags: flagsOf(tt.help)})
		at := strings.Index(strings.Join(cmd.Args, " "), "--rpc")
		if at < 0 || !strings.Contains(strings.Join(cmd.Args, " "), strings.Join(tt.want, " ")) {
			t.Errorf("%s: %v, want %v in it", name, cmd.Args, tt.want)
		}
		if diff := cmp.Diff([]int{5, 6}, cmd.Needs.Connect); diff != "" {
			t.Error(diff)
		}
	}
	cmd := new(Process).Command(supervisor.Launch{Spec: specOf("m", 1)}, supervisor.Build{Flags: flagsOf(newHelp)})
	if cmd.Needs.Connect != nil || strings.Contains(strings.Join(cmd.Args, " "), "-ngl") {
		t.Errorf("without workers: %v, %v", cmd.Args, cmd.Needs.Connect)
	}
}

func TestMemoryAt(t *testing.T) {
	t.Parallel()
	const list = `Available devices:
  RPC0: 10.0.0.3:5 (24105 MiB, 24000 MiB free)
  RPC1: 10.0.0.3:5 (100 MiB, 10 MiB free)
  RPC0: 10.0.0.4:5 (7 MiB, 7 MiB free)
  CUDA0: NVIDIA (24135 MiB, 23880 MiB free)
`
	if got, want := memoryAt(list, "10.0.0.3:5"), (supervisor.WorkerMemory{Total: 24205 << 20, Free: 24010 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := memoryAt(list, "10.0.0.9:5"); got != (supervisor.WorkerMemory{}) {
		t.Errorf("%+v", got)
	}
}

// A worker that is busy isn't asked, so that it can't be disturbed.
func TestAskWorker_ABusyOne(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	defer close(held)
	p := &Process{Locate: func() (string, error) { return "/nowhere/llama-server", nil }}
	if _, err := p.AskWorker(t.Context(), listen(t, func(net.Conn) { <-held })); err == nil || !strings.Contains(err.Error(), "computes for another program") {
		t.Errorf("%v", err)
	}
}
