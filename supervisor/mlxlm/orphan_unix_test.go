//go:build unix

package mlxlm

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// serverVariable makes the test binary a server of its own, which the test kills: "command|journal".
const serverVariable = "LMCADDY_TEST_SERVER"

// serveIfTold loads a model, says so, and waits for its end.
func serveIfTold() {
	command, journal, ok := strings.Cut(os.Getenv(serverVariable), "|")
	if !ok {
		return
	}
	setup := process.Setup{Command: func() []string { return []string{command} }, Log: slog.New(slog.DiscardHandler)}
	s := supervisor.New(map[string]process.Program{"mlx_lm": &Process{setup: setup}}, supervisor.Options{Options: process.Options{Journal: journal}}, slog.New(slog.DiscardHandler))
	if _, err := s.Load(context.Background(), spec(1), nil); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("loaded\n")
	select {}
}

// The server doesn't end when its input closes, and a script may have started it.
func TestOrphan_AKilledServerTakesItsEngineWithIt(t *testing.T) {
	t.Parallel()
	fake := fakemlx.Install(t, &fakemlx.Script{AnyModel: true})
	for name, script := range map[string]string{
		"a command": "",
		"a script":  "#!/bin/sh\n" + fake.Path + ` "$@" &` + "\nwait\n",
	} {
		t.Run(name, func(t *testing.T) {
			command := fake.Path
			if script != "" {
				command = filepath.Join(t.TempDir(), "serve")
				if err := os.WriteFile(command, []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), serverVariable+"="+command+"|"+filepath.Join(t.TempDir(), "engines"))
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
			before := fake.Events()
			_ = server.Process.Kill()
			_ = server.Wait()
			for _, ev := range before {
				if ev.Kind == fakekit.Started {
					fake.WaitGone(t, ev.PID)
				}
			}
		})
	}
}
