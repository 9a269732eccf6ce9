package caddymodule

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

// socketHome is a home with a path that is short enough.
func socketHome(t *testing.T) home.Dir {
	t.Helper()
	root, err := os.MkdirTemp("", "lm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	dir := home.Dir(root)
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// saying is a service that answers with a text.
func saying(text string) *service {
	return &service{log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
	})}
}

// heard is what a socket answers, as JSON.
func heard(t *testing.T, dir home.Dir) (answer string) {
	t.Helper()
	c := client.OnSocket(dir.Socket())
	defer c.Close()
	if err := c.Get(t.Context(), "/x", &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestSocket_TheNewestThatIsAliveAnswers(t *testing.T) {
	t.Parallel()
	dir := socketHome(t)
	s := openSocket(dir, slog.New(slog.DiscardHandler))
	defer s.close()
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { s.push(1, saying(`"one"`)) }, "one"},
		{func() { s.push(3, saying(`"three"`)) }, "three"},
		{func() { s.push(2, saying(`"two"`)) }, "three"}, // it was slow to start
		{func() { s.pop(3) }, "two"},
		{func() { s.pop(3); s.pop(1) }, "two"},
	} {
		step.do()
		if got := heard(t, dir); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}

func TestSocket_IsThisUsersAloneAndTakesTheLeftoversPlace(t *testing.T) {
	t.Parallel()
	dir := socketHome(t)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: dir.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)                                                      // as in a crash
	_ = left.Close()                                                                  // it is to be left behind
	if err := os.MkdirAll(filepath.Join(dir.Run(), ".new", "x"), 0o700); err != nil { // of a crash while it was made
		t.Fatal(err)
	}
	s := openSocket(dir, slog.New(slog.DiscardHandler))
	s.push(1, saying(`"here"`))
	if got := heard(t, dir); got != "here" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(dir.Socket())
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("%v, %v", info, err)
	}
	s.close()
	entries, err := os.ReadDir(dir.Run())
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the run folder: %v, %v", entries, err)
	}
}

func TestSocket_ThatCannotBeIsTold(t *testing.T) {
	t.Parallel()
	long := home.Dir(filepath.Join(t.TempDir(), strings.Repeat("x", home.MaxSocketPath)))
	if err := long.Make(); err != nil {
		t.Fatal(err)
	}
	missing := home.Dir(filepath.Join(t.TempDir(), "missing"))
	for dir, want := range map[home.Dir]string{long: "choose a shorter LMCADDY_HOME", missing: "no such file"} {
		var log bytes.Buffer
		s := openSocket(dir, slog.New(slog.NewTextHandler(&log, nil)))
		if s != nil || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), want) || !strings.Contains(log.String(), dir.Socket()) {
			t.Errorf("%v: %s", s, log.String())
		}
		s.push(1, saying("")) // none of which does anything
		s.pop(1)
		s.close()
	}
}

// ending is a socket that a request is in progress on when its last configuration goes.
func ending(t *testing.T, grace time.Duration) (s *socket, finish chan struct{}, answered chan error) {
	t.Helper()
	dir := socketHome(t)
	s = openSocket(dir, slog.New(slog.DiscardHandler))
	finish, answered = make(chan struct{}), make(chan error, 1)
	arrived := make(chan struct{})
	s.push(1, &service{grace: grace, log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-finish:
			_, _ = io.WriteString(w, "{}")
		case <-r.Context().Done():
		}
	})})
	go func() {
		c := client.OnSocket(dir.Socket())
		defer c.Close()
		answered <- c.Get(t.Context(), "/x", nil)
	}()
	<-arrived
	s.pop(1)
	s.beginEnd()
	if _, err := os.Stat(dir.Socket()); !os.IsNotExist(err) {
		t.Errorf("the socket takes new connections: %v", err)
	}
	return s, finish, answered
}

func TestSocket_RequestsUnderWayAreAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{0, time.Hour} {
		s, finish, answered := ending(t, grace)
		close(finish)
		s.close()
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

func TestSocket_WhoWatchesADownloadDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	dir := socketHome(t)
	s := openSocket(dir, slog.New(slog.DiscardHandler))
	arrived, answered := make(chan struct{}), make(chan error, 1)
	s.push(1, &service{log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		close(arrived)
		<-r.Context().Done()
	})})
	go func() {
		c := client.OnSocket(dir.Socket())
		defer c.Close()
		_, err := c.Follow(t.Context(), "job_1", func(client.Job) {})
		answered <- err
	}()
	<-arrived
	s.pop(1)
	s.close()
	if err := <-answered; !errors.Is(err, client.ErrCut) {
		t.Error(err)
	}
}

func TestSocket_GraceEnds(t *testing.T) {
	t.Parallel()
	s, _, answered := ending(t, time.Millisecond)
	s.close()
	if err := <-answered; err == nil {
		t.Error("it was answered")
	}
}

func TestSocket_UnusedIsClosed(t *testing.T) {
	t.Parallel()
	dir := socketHome(t)
	openSocket(dir, slog.New(slog.DiscardHandler)).close()
	if _, err := os.Stat(dir.Socket()); !os.IsNotExist(err) {
		t.Error(err)
	}
}
