package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// manager listens on a socket, as systemd does, and returns what the server tells it, as long as that isn't what was told last.
func manager(t *testing.T, h *harness.Home) <-chan string {
	t.Helper()
	path := filepath.Join(h.Dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h.Env = append(h.Env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=300000")
	told := make(chan string, 1000)
	go func() {
		defer close(told)
		buffer := make([]byte, 4096)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			told <- string(buffer[:n])
		}
	}()
	return told
}

// next waits until the manager is told something else than the watchdog's message, or exactly that if it is wanted.
func next(t *testing.T, told <-chan string, want string) {
	t.Helper()
	timeout := time.After(harness.Patience)
	for {
		select {
		case got := <-told:
			if got == want {
				return
			}
			if got != "WATCHDOG=1" {
				t.Fatalf("the manager was told %q, want %q", got, want)
			}
		case <-timeout:
			t.Fatalf("the manager wasn't told %q", want)
		}
	}
}

// systemd is told that the server is ready when it serves and its preloads have begun, that it reloads, that it stops, and
// meanwhile that it works.
func TestService_TellsSystemd(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	told := manager(t, h)
	config := harness.Config{Port: harness.FreePort(t), LM: []string{"model " + harness.Model + " {", "\tpreload", "}"}}
	s := h.Begin(config.Port, "run", "--config", h.WriteFile("Caddyfile", config.String()))
	next(t, told, "RELOADING=1") // Caddy's word for reading a configuration
	next(t, told, "READY=1")
	conn, err := net.Dial("tcp", harness.Address(config.Port))
	if err != nil {
		t.Fatalf("it was ready before it listened: %v", err)
	}
	_ = conn.Close()
	harness.Eventually(t, harness.Patience, "the preload ends", func() bool { return strings.Contains(s.Command("ps").Output, "ready") })
	environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Engine().PID), "environ"))
	if err != nil || strings.Contains(string(environment), "NOTIFY_SOCKET") || strings.Contains(string(environment), "WATCHDOG") {
		t.Errorf("the engine can speak to systemd: %q, error %v", environment, err)
	}
	for range 3 {
		next(t, told, "WATCHDOG=1")
	}
	wantDone(t, s.Command("reload", "--force", "--config", filepath.Join(h.Work, "Caddyfile")))
	next(t, told, "RELOADING=1")
	next(t, told, "READY=1")
	next(t, told, "WATCHDOG=1")
	if status := s.Stop(syscall.SIGTERM, harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}
	next(t, told, "STOPPING=1")
}

// fakeSystemd puts programs of systemd on the PATH of a home that do nothing but keep whether the service runs, and makes the home
// that of an ordinary user. It returns a function that returns which of them were called since its last call.
func fakeSystemd(t *testing.T, h *harness.Home) (called func() string) {
	t.Helper()
	calls, active := filepath.Join(h.Path, "calls"), filepath.Join(h.Path, "active")
	for name, answer := range map[string]string{
		"systemctl": `state=inactive
[ -e "` + active + `" ] && read -r state <"` + active + `"
case "$*" in
*show*) echo LoadState=loaded; echo ActiveState=$state; echo SubState=$state; echo UnitFileState=enabled ;;
*restart*) echo active >"` + active + `" ;;
*disable*) echo inactive >"` + active + `" ;;
esac`,
		"loginctl":   "echo Linger=no",
		"journalctl": "echo a line of the journal",
	} {
		script := "#!/bin/sh\necho " + name + ` "$@" >>"` + calls + "\"\n" + answer + "\n"
		if err := os.WriteFile(filepath.Join(h.Path, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.BeOrdinary()
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(h.User, ".config")) })
	return func() string {
		text, err := os.ReadFile(calls)
		if os.IsNotExist(err) {
			return ""
		}
		if err == nil {
			err = os.Remove(calls)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// The commands run the system's own programs, for the service of the user who types them.
func TestService_Commands(t *testing.T) {
	t.Parallel()
	h := harness.NewBareHome(t)
	config := h.WriteFile("Caddyfile", harness.Config{Port: harness.FreePort(t)}.String())
	called := fakeSystemd(t, h)
	wantDone(t, h.Command("service", "install", "--dry-run"), "[Service]", "Type=notify", "ExecStart=")
	if got := called(); got != "" {
		t.Errorf("a dry run has run:\n%s", got)
	}
	wantFailed(t, h.Command("service", "install", "--system"), "sudo lmcaddy service install --system")
	wantFailed(t, h.Command("service", "install", "--config", "nowhere"), "nowhere")
	wantDone(t, h.Command("service", "install", "--config", config), "installed and running", "enable-linger", "runtime get")
	const enabled = "systemctl --user daemon-reload\nsystemctl --user enable lmcaddy.service\nsystemctl --user restart lmcaddy.service\nloginctl show-user"
	if got := called(); !strings.HasPrefix(got, "systemctl --user show --property=Version\n") || !strings.Contains(got, enabled) {
		t.Errorf("it has run:\n%s", got)
	}
	if unit, err := os.ReadFile(filepath.Join(h.User, ".config/systemd/user/lmcaddy.service")); err != nil || !strings.Contains(string(unit), "LMCADDY_HOME="+h.Dir) {
		t.Errorf("the unit is %q, error %v", unit, err)
	}
	wantDone(t, h.Command("service", "install"), "installed and running") // again, while it runs, with a Caddyfile that is made
	wantDone(t, h.Command("validate", "--config", filepath.Join(h.Dir, "Caddyfile")), "Valid")
	wantDone(t, h.Command("service", "status"), "active")
	wantDone(t, h.Command("service", "status", "--json"), `"running": true`)
	wantDone(t, h.Command("service", "restart"))
	wantFailed(t, h.Command("service", "logs", "-n", "-7"), "negative")
	called()
	wantDone(t, h.Command("service", "logs", "-n", "7"), "a line of the journal")
	if got := called(); !strings.Contains(got, "journalctl --user --unit lmcaddy.service --lines 7 --no-pager\n") {
		t.Errorf("it has run:\n%s", got)
	}
	wantDone(t, h.Command("service", "uninstall"), "removed")
	if got := called(); !strings.Contains(got, "systemctl --user disable --now lmcaddy.service\nsystemctl --user daemon-reload\n") {
		t.Errorf("it has run:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "Caddyfile")); err != nil {
		t.Errorf("the Caddyfile is gone: %v", err)
	}
	wantFailed(t, h.Command("service", "status"), "the service doesn't run")
	wantFailed(t, h.Command("service", "uninstall"), "hasn't written") // this systemctl knows a unit, and it isn't that of install
}

// A service that couldn't start, since another server has its home or its port, isn't installed.
func TestService_InstallBesideAServer(t *testing.T) {
	t.Parallel()
	h := harness.NewBareHome(t)
	port := harness.FreePort(t)
	other := h.WriteFile("other", "http://127.0.0.1:"+strconv.Itoa(harness.FreePort(t))+" {\n\tlm_api\n}\n")
	same := h.WriteFile("Caddyfile", "http://127.0.0.1:"+strconv.Itoa(port)+" {\n\trespond hello\n}\n")
	called := fakeSystemd(t, h)
	s := h.Begin(port, "serve", "--listen", harness.Address(port))
	harness.Eventually(t, harness.Patience, "it serves", func() bool { return s.Command("status").Status == 0 })
	wantFailed(t, h.Command("service", "install", "--config", other), "in use by another lmcaddy", "process")
	env := h.Env
	h.Env = append(h.Env, "LMCADDY_HOME="+filepath.Join(h.Work, "elsewhere"))
	wantFailed(t, h.Command("service", "install", "--config", same), "already in use by another program")
	h.Env = env
	if got := called(); strings.Contains(got, "restart") || strings.Contains(got, "enable") {
		t.Errorf("it has run:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(h.User, ".config")); err == nil {
		t.Error("a unit was written")
	}
}
