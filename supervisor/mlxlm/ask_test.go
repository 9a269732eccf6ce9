package mlxlm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  fakemlx.Script
		command []string // the first word is beside the server
		version string
		knows   bool // its flags
	}{
		"the server":              {fakemlx.Script{}, []string{"mlx_lm.server"}, "0.32.0", true},
		"the command":             {fakemlx.Script{Version: "0.31.3"}, []string{"mlx_lm", "server"}, "0.31.3", true},
		"python":                  {fakemlx.Script{}, []string{"python3", "-m", "mlx_lm", "server"}, "0.32.0", true},
		"python, the old way":     {fakemlx.Script{}, []string{"python3", "-m", "mlx_lm.server"}, "0.32.0", true},
		"something that fails":    {fakemlx.Script{NotMLX: true}, []string{"mlx_lm.server"}, unknown, false},
		"something without help":  {fakemlx.Script{HelpHangs: true}, []string{"mlx_lm.server"}, "0.32.0", false},
		"something with an error": {fakemlx.Script{}, []string{"python3", "-c", "print()"}, unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemlx.Install(t, &c.script)
			c.command[0] = filepath.Join(filepath.Dir(fake.Path), c.command[0])
			p := &Process{setup: setupOf(t, c.command...)}
			if c.script.HelpHangs {
				p.timeout = 2 * time.Second
			}
			build, err := p.Probe(t.Context())
			_, knows := build.Flags["--prompt-cache-bytes"]
			if err != nil || build.Version != c.version || knows != c.knows || build.Path != c.command[0] || len(build.Args) != len(c.command)-1 {
				t.Errorf("build %+v, error %v", build, err)
			}
			asked := len(fake.Events())
			if _, err := p.Probe(t.Context()); err != nil || len(fake.Events()) != asked {
				t.Errorf("it was asked again: %v, error %v", fake.Events()[asked:], err)
			}
			for _, ev := range fake.Events() {
				if ev.Kind == fakekit.Probe {
					fake.WaitGone(t, ev.PID)
				}
			}
		})
	}
}

// An upgrade of the package may leave the executable, such as python3, as it was.
func TestProbe_AsksAgainAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	fake := fakemlx.Install(t, nil)
	packages := filepath.Join(filepath.Dir(filepath.Dir(fake.Path)), "lib", "python3.14", "site-packages")
	install := func(version string) {
		if err := errors.Join(os.RemoveAll(packages), os.MkdirAll(filepath.Join(packages, "mlx_lm-"+version+".dist-info"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	p := &Process{setup: setupOf(t, filepath.Join(filepath.Dir(fake.Path), "python3"), "-m", "mlx_lm", "server")}
	for _, version := range []string{"0.31.3", "0.33.0"} {
		install(version)
		if build, err := p.Probe(t.Context()); err != nil || build.Version != version {
			t.Errorf("version %q, error %v, want %s", build.Version, err, version)
		}
	}
	if n := len(fake.Events()); n != 2 {
		t.Errorf("%d questions, want one about the flags for each version", n)
	}
}

func TestProbe_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	fake := fakemlx.Install(t, &fakemlx.Script{HelpHangs: true})
	p := &Process{setup: setupOf(t, fake.Path)}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := p.Probe(ctx)
		failed <- err
	}()
	asked := fake.Wait(t, fakekit.Is(fakekit.Probe))
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || len(p.probed) != 0 {
		t.Errorf("error %v, remembered %v", err, p.probed)
	}
	fake.WaitGone(t, asked.PID)
}

func TestFind_NoServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"none":      {nil, "no mlx_lm.server was found: run \"lmcaddy runtime get mlx-lm\", or set `engine mlx_lm { command … }` in the Caddyfile"},
		"a mistake": {[]string{"mlx_server"}, "the configured mlx_lm.server mlx_server doesn't exist: correct the command in `engine mlx_lm { command … }`"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Process{setup: setupOf(t, c.command...)}).Probe(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || (c.command == nil && !errors.Is(err, runtimes.ErrNone)) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
