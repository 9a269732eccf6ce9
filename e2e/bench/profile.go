package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeProfiles writes profiles of CPU time and memory under each load, for `go tool pprof`: of lmcaddy, and of plain Caddy. It prints
// where the time goes, step by step, and with -update writes that into the document. Without the name of a load, those are profiled that
// tell the most.
func writeProfiles(t testing.TB, folder, work string) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startSite(t)
	var tables bytes.Buffer
	for _, w := range workloads(1000) {
		if work != w.name && (work != "" || w.pauseUS > 0 || w.isProse) {
			continue
		}
		unit := "a request"
		if w.isLong {
			unit = "1,000 events"
		}
		plain := profileOf(t, s.target(caddy), w, folder)
		for _, name := range []string{ours, oneBody} {
			if tg := s.target(name); tg.applies(w) && (name == ours || work != "") {
				printf(&tables, "\n%s, %s: processor time of %s\n", name, w.name, unit)
				writeSteps(&tables, profileOf(t, tg, w, folder), plain)
			}
		}
	}
	printf(os.Stdout, "%s", tables.String())
	if *update && !t.Failed() {
		if err := replaceInDocument(profileCommand, tables.String()); err != nil {
			t.Error(err)
		}
	}
}

// profileOf saves profiles of a target under a load, and returns the steps of the first.
func profileOf(t testing.TB, tg target, w workload, folder string) (c costed) {
	admin := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", tg.admin)
	}}}
	defer admin.CloseIdleConnections()
	for _, kind := range []struct {
		name, path string
		seconds    int
	}{{"allocs", "allocs", 5}, {"cpu", "profile", 15}} {
		type result struct {
			sample
			error
		}
		ended := make(chan result, 1)
		go func() {
			s, err := load{target: tg, work: w, clients: 4, lasting: time.Duration(kind.seconds+2) * time.Second}.run()
			ended <- result{s, err}
		}()
		file := filepath.Join(folder, strings.NewReplacer(" ", "-", ",", "").Replace(tg.name+" "+w.name+"."+kind.name))
		err := save(admin, fmt.Sprintf("http://localhost/debug/pprof/%s?seconds=%d", kind.path, kind.seconds), file)
		got := <-ended
		if err := errors.Join(err, got.error); err != nil {
			t.Fatal(err)
		}
		c.cpu = figuresOf(got.sample, w).cpu
		if kind.name == "cpu" {
			if c.shares, err = readShares(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func save(client *http.Client, url, path string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, content)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
