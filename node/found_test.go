package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/echoengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestFindEngines(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	server := filepath.Join(bin, "mlx_lm.server")
	if err := os.WriteFile(server, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	n := openWithEcho(t)
	if err := n.Push(1, node.Settings{Engines: map[string]node.EngineSettings{"echo": {Path: path, Sandbox: schedule.Off}}}); err != nil {
		t.Fatal(err)
	}
	got := n.Engines.Find()
	for i := range got {
		if reason, ok := strings.CutPrefix(got[i].Sandbox, process.SandboxOff+": "); ok && reason != "" {
			got[i].Sandbox = "off, with a reason"
		}
		if strings.Contains(got[i].Problem, `run "lmcaddy runtime get llama.cpp"`) {
			got[i].Problem = "none"
		}
	}
	want := []node.FoundEngine{
		{Name: "echo", Executable: path, Sandbox: process.SandboxOff},
		{Name: "llama_server", Problem: "none", Sandbox: process.SandboxState()},
		{Name: "mlx_lm", Executable: server, Sandbox: "off, with a reason"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
