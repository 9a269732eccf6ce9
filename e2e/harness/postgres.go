package harness

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Database is a PostgreSQL of one test.
type Database struct {
	URL string

	t      testing.TB
	net    *Namespace
	start  func() *exec.Cmd
	query  func(text string) *exec.Cmd
	ready  string // the file that says so
	server *exec.Cmd
}

// Postgres starts an empty PostgreSQL for one test, and returns the URL of its database. It listens on a socket in a folder
// of its own.
func Postgres(t testing.TB) string {
	t.Helper()
	return StartPostgres(t, nil).URL
}

// StartPostgres starts an empty PostgreSQL for one test. It listens on a socket in a folder of its own, or else at the address of a namespace.
func StartPostgres(t testing.TB, at *Namespace) *Database {
	t.Helper()
	found, err := exec.Command("../tools/postgres.sh").Output()
	if err != nil {
		t.Fatalf("tools/postgres.sh: %v", err)
	}
	bin := strings.TrimSpace(string(found))
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	data := filepath.Join(dir, "data")
	initdb := serverCommand(t, dir, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "lmcaddy", "--auth", "trust", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	d := &Database{URL: "postgres://lmcaddy@/postgres?" + url.Values{"host": {dir}}.Encode(), t: t, net: at, ready: filepath.Join(data, "postmaster.pid")}
	address := ""
	if at != nil {
		address = at.Address
		d.URL = "postgres://lmcaddy@" + address + "/postgres"
		letIn(t, filepath.Join(data, "pg_hba.conf"), address+"/24")
	}
	d.start = func() *exec.Cmd {
		return serverCommand(t, dir, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses="+address)
	}
	d.query = func(text string) *exec.Cmd {
		return serverCommand(t, dir, filepath.Join(bin, "psql"), "-h", dir, "-U", "lmcaddy", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", text)
	}
	d.Start()
	t.Cleanup(func() { d.end(syscall.SIGQUIT) })
	return d
}

// letIn lets everybody on a network use a database.
func letIn(t testing.TB, hba, network string) {
	t.Helper()
	file, err := os.OpenFile(hba, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(file, "host all all %s trust\n", network)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Start starts it again, and waits until it is ready.
func (d *Database) Start() {
	d.t.Helper()
	server := d.start()
	if err := d.net.do(server.Start); err != nil {
		d.t.Fatal(err)
	}
	d.server = server
	Eventually(d.t, Patience, "PostgreSQL is ready", func() bool {
		status, err := os.ReadFile(d.ready)
		return err == nil && strings.Contains(string(status), "\nready")
	})
}

// SetClock has all later connections see another time than the machine's.
func (d *Database) SetClock(ahead time.Duration) {
	d.t.Helper()
	out, err := d.query(fmt.Sprintf(`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS $$ SELECT pg_catalog.clock_timestamp() + interval '%d seconds' $$;
		ALTER ROLE lmcaddy SET search_path = public, pg_catalog`, int(ahead.Seconds()))).CombinedOutput()
	if err != nil {
		d.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Kill ends it as if it had crashed, but so that it can be started again.
func (d *Database) Kill() { d.end(syscall.SIGQUIT) }

// Restart shuts it down, which ends its connections, and starts it again.
func (d *Database) Restart() {
	d.t.Helper()
	d.end(syscall.SIGINT)
	d.Start()
}

// end ends it, unless it has ended.
func (d *Database) end(sig syscall.Signal) {
	if d.server == nil {
		return
	}
	_ = d.server.Process.Signal(sig)
	_ = d.server.Wait()
	d.server = nil
}

// serverCommand is a command of PostgreSQL. Since that refuses to run as root, root runs it as another user, who gets the folder.
func serverCommand(t testing.TB, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return cmd
	}
	uid, gid, err := otherUser()
	if err == nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // an id of the system's
		err = os.Chown(dir, uid, gid)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func otherUser() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		if uid, err = strconv.Atoi(found.Uid); err != nil {
			return 0, 0, err
		}
		gid, err = strconv.Atoi(found.Gid)
		return uid, gid, err
	}
	return 0, 0, fmt.Errorf("PostgreSQL doesn't run as root, and there is neither a user postgres nor a user nobody")
}
