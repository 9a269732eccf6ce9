//go:build unix

package supervisor

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/closedport"
	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

// startIn runs a supervisor whose journal is a given folder.
func startIn(t *testing.T, script *fakeengine.Script, journal string) (*Supervisor, *fakeengine.Engine) {
	t.Helper()
	fake := fakeengine.Install(t, script)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]Process{"llama_server": engine}, Options{Journal: journal}, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	return s, fake
}

func TestAddress_ASocketInAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	s, fake := start(t, nil)
	first := works(t, s).Instance
	if info, err := os.Stat(filepath.Dir(first.Address)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the socket %s: %v, %v", first.Address, info, err)
	}
	if line := strings.Join(starts(fake)[0].Argv, " "); strings.Contains(line, "--port") {
		t.Errorf("arguments %s: it has a port, too", line)
	}
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(first.Address)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end its folder is still there: %v", err)
	}
	if second := works(t, s).Instance; second.Address == first.Address {
		t.Error("a name was used again")
	}
}

// A home whose path is too long for sockets has them in a short folder, which is removed with the server.
func TestAddress_AHomeWithALongPath(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "engines")
	s, _ := startIn(t, nil, journal)
	address := works(t, s).Instance.Address
	short := filepath.Dir(filepath.Dir(address))
	if strings.HasPrefix(address, journal) || len(address) > 103 || !isPrivate(short) || !strings.HasSuffix(address, ".sock") {
		t.Errorf("address %s, in a private folder: %t", address, isPrivate(short))
	}
	if target, _ := os.Readlink(filepath.Join(journal, shortLink)); target != short {
		t.Errorf("the journal names %q, want %s", target, short)
	}
	s.Close()
	if _, err := os.Stat(short); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end the folder is still there: %v", err)
	}
	if left, _ := os.ReadDir(journal); len(left) > 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestEndLeftovers_RemovesFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base string
		mode os.FileMode
		gone bool
	}{
		"a folder that we made":   {shortPrefix + "1", 0o700, true},
		"one with another's name": {"precious", 0o700, false},
		"one that others enter":   {shortPrefix + "1", 0o755, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, short := filepath.Join(t.TempDir(), "engines"), filepath.Join(t.TempDir(), c.base)
			for _, dir := range []string{filepath.Join(journal, "abcdefgh"), filepath.Join(short, "abcdefgh")} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(short, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(short, filepath.Join(journal, shortLink)); err != nil {
				t.Fatal(err)
			}
			EndLeftovers(t.Context(), journal, slog.New(slog.DiscardHandler))
			_, err := os.Stat(short)
			if left, _ := os.ReadDir(journal); len(left) > 0 || errors.Is(err, os.ErrNotExist) != c.gone {
				t.Errorf("left in the journal: %v; the short folder: %v", left, err)
			}
		})
	}
}

// A request is never sent to the port of an ended engine, even if another program listens there now.
func TestAddress_APortOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	port := closedport.Port(t)
	s, _ := startWith(t, &fakeengine.Script{NoSockets: true}, Options{port: func() (int, error) { return port, nil }}, nil)
	lease := works(t, s)
	p := lease.process
	held, err := p.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	kill(t, lease.Instance.PID)
	<-p.exited
	listener, err := net.Listen("tcp", lease.Instance.Address)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	stranger := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })}
	go func() { _ = stranger.Serve(listener) }()
	t.Cleanup(func() { _ = stranger.Close() })
	if _, err := p.ask(t.Context(), "/v1/models"); !errors.Is(err, errEnded) {
		t.Errorf("error %v, want %v", err, errEnded)
	}
	if len(asked) > 0 {
		t.Error("a stranger was asked")
	}
}
