package service

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstall_Launchd(t *testing.T) {
	t.Parallel()
	f := newHost(t, "darwin", 501)
	m := f.manager(t, User)
	f.fails["bootout"], f.fails["print"] = exit(3), exit(113) // nothing is loaded yet
	if _, err := m.Install(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"launchctl bootout gui/501/io.github.lmcaddy", "launchctl print gui/501/io.github.lmcaddy",
		"launchctl bootstrap gui/501 ~/Library/LaunchAgents/io.github.lmcaddy.plist",
	}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
	f.calls, f.fails = nil, map[string]error{"print": exit(113)}
	if err := m.Uninstall(t.Context(), false); err != nil || exists(f.UserHome+"/Library/LaunchAgents/io.github.lmcaddy.plist") {
		t.Errorf("it is still there: %v", err)
	}
}

// A server that answers its last requests keeps its job loaded, and another can't be until it has ended.
func TestUninstall_LaunchdWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newHost(t, "darwin", 501)
		m := f.manager(t, User)
		path := f.UserHome + "/Library/LaunchAgents/io.github.lmcaddy.plist"
		if err := write(path, m.Definition()); err != nil {
			t.Fatal(err)
		}
		f.fails["bootout"] = exit(inProgress)
		run, begin := f.Run, time.Now()
		f.Run = func(ctx context.Context, program string, args ...string) (string, error) {
			if args[0] == "print" && time.Since(begin) > 20*time.Second {
				return "", exit(113)
			}
			return run(ctx, program, args...)
		}
		m, err := New(f.Host, Service{Scope: User})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Uninstall(t.Context(), false); err != nil || exists(path) || time.Since(begin) > 22*time.Second {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
		if err := write(path, m.Definition()); err != nil {
			t.Fatal(err)
		}
		f.Run = run // it never ends
		m, err = New(f.Host, Service{Scope: User})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Uninstall(t.Context(), false); err == nil || !exists(path) {
			t.Errorf("a job that doesn't end was removed: %v", err)
		}
	})
}

// TestLaunchd_PropertyList reads the property list as XML: launchd refuses one that isn't well-formed.
func TestLaunchd_PropertyList(t *testing.T) {
	t.Parallel()
	f := newHost(t, "darwin", 501)
	s := f.Defaults(User, "/Applications/A & <B>/lmcaddy", filepath.Join(f.UserHome, ".lmcaddy"))
	m, err := New(f.Host, s)
	if err != nil {
		t.Fatal(err)
	}
	var strs []string
	var keys, depth int
	for d := xml.NewDecoder(strings.NewReader(m.Definition())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		depth++
		switch start.Name.Local {
		case "key":
			keys++
		case "string":
			var text string
			if err := d.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			strs = append(strs, text)
		}
	}
	for _, want := range []string{s.Program, s.Config, s.Home, "io.github.lmcaddy"} {
		if !slices.Contains(strs, want) {
			t.Errorf("%q is missing among %q", want, strs)
		}
	}
	if keys < 12 {
		t.Errorf("%d keys", keys)
	}
}
