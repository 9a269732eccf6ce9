package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a PostgreSQL server for the tests, which is started when needed.
var server postgresServer

type postgresServer struct {
	once    sync.Once
	err     error
	dir     string // it is the server's user's
	process *exec.Cmd
	log     strings.Builder
	schemas int
	mu      sync.Mutex
}

// schema returns the URL of a new schema, which is removed after the test.
func (p *postgresServer) schema(t testing.TB) string {
	t.Helper()
	p.once.Do(func() { p.err = p.start() })
	if p.err != nil {
		t.Fatal(p.err)
	}
	p.mu.Lock()
	p.schemas++
	name := fmt.Sprintf("test%d", p.schemas)
	p.mu.Unlock()
	p.run(t, "CREATE SCHEMA "+name)
	t.Cleanup(func() { p.run(t, "DROP SCHEMA "+name+" CASCADE") })
	return p.url(name)
}

func (p *postgresServer) url(schema string) string {
	query := url.Values{"host": {p.dir}, "search_path": {schema}, "application_name": {schema}}
	return "postgres://lmcaddy@/postgres?" + query.Encode()
}

// run runs SQL as an operator.
func (p *postgresServer) run(t testing.TB, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.url("public"))
	must(t, err)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	must(t, err)
}

// alone waits until the server has dropped the connections of a schema's clients, which may have died.
func (p *postgresServer) alone(t testing.TB, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	at, err := url.Parse(address)
	must(t, err)
	conn, err := pgx.Connect(ctx, p.url("public"))
	must(t, err)
	defer func() { _ = conn.Close(ctx) }()
	for n := 1; n > 0; {
		must(t, conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
			at.Query().Get("search_path")).Scan(&n))
	}
}

// postgresFolder finds the folder of initdb and postgres.
func postgresFolder() (string, error) {
	if dir := os.Getenv("LMCADDY_POSTGRES"); dir != "" {
		return dir, nil
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "../.cache/postgres/bin/initdb"} {
		found, _ := filepath.Glob(pattern)
		if len(found) > 0 {
			return filepath.Abs(filepath.Dir(slices.Max(found)))
		}
	}
	return "", errors.New("these tests need PostgreSQL: run tools/postgres.sh, or name the folder that has initdb and postgres in LMCADDY_POSTGRES")
}

// start starts the server with a socket in a folder of its own and without a port.
func (p *postgresServer) start() error {
	bin, err := postgresFolder()
	if err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "lmcaddy-postgres"); err != nil {
		return err
	}
	data := filepath.Join(p.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "lmcaddy", "--auth", "trust", "--no-sync",
		"--encoding", "UTF8", "--locale", "C")
	initdb.Dir = p.dir
	if err := asServerUser(initdb, p.dir); err != nil {
		return err
	}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	p.process = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", p.dir, "-c", "listen_addresses=",
		"-c", "max_connections=400", "-c", "fsync=on")
	p.process.Dir = p.dir
	p.process.Stderr = &p.log
	if err := asServerUser(p.process, p.dir); err != nil {
		return err
	}
	if err := p.process.Start(); err != nil {
		return err
	}
	return p.wait()
}

// wait waits until the server answers.
func (p *postgresServer) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.url("public"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			p.stop()
			return fmt.Errorf("PostgreSQL didn't start: %w; it said: %s", err, p.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *postgresServer) stop() {
	if p.process != nil && p.process.Process != nil {
		_ = p.process.Process.Signal(stopServer)
		_ = p.process.Wait()
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}
