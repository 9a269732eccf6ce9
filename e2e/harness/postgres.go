package harness

import (
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
)

// Postgres starts an empty PostgreSQL for one test, and returns the URL of its database. It listens on a socket in a folder
// of its own.
func Postgres(t testing.TB) string {
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
	server := serverCommand(t, dir, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	Eventually(t, Patience, "PostgreSQL is ready", func() bool {
		status, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && strings.Contains(string(status), "\nready")
	})
	return "postgres://lmcaddy@/postgres?" + url.Values{"host": {dir}}.Encode()
}

// EndPostgres kills the PostgreSQL with a URL from [Postgres].
func EndPostgres(t testing.TB, database string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join(u.Query().Get("host"), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(status), "\n", 2)[0])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGQUIT)
	}
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, Patience, "PostgreSQL has ended", func() bool {
		_, err := os.Stat(filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
		return os.IsNotExist(err)
	})
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
