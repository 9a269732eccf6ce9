package bench

import (
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

// writeProfiles writes profiles of lmcaddy's CPU time and memory under each load, for `go tool pprof`. Nothing is compared.
func writeProfiles(t testing.TB, folder, work string) {
	const lasting = 10 * time.Second
	s := startSite(t)
	admin := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.server.RunFile("admin.sock"))
	}}}
	for _, w := range workloads(1000) {
		for _, name := range []string{ours, oneBody} {
			tg := s.target(name)
			if tg.gathers && w.isLong || work != "" && work != w.name {
				continue
			}
			for kind, path := range map[string]string{"cpu": "profile?seconds=8", "allocs": "allocs?seconds=8"} {
				ended := make(chan error, 1)
				go func() {
					_, err := load{target: tg, work: w, clients: 4, lasting: lasting}.run()
					ended <- err
				}()
				file := strings.NewReplacer(" ", "-", ",", "").Replace(name + " " + w.name + "." + kind)
				err := save(admin, "http://localhost/debug/pprof/"+path, filepath.Join(folder, file))
				if err := errors.Join(err, <-ended); err != nil {
					t.Error(err)
				}
			}
		}
	}
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
