package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// Sysusers is what systemd-sysusers makes the account of the system's service from. The groups give access to GPUs.
const Sysusers = `# ` + mark + `
u lmcaddy - "lmcaddy model server" /var/lib/lmcaddy
m lmcaddy render
m lmcaddy video
`

// unitCommon is what the units of systems and of users have in common.
//   - READY=1 is sent by Caddy when all listeners are open, and models with preload are being loaded.
//   - Only the main process is told to end. It ends the engines when their requests are answered; what is left after that is
//     killed.
//   - When the kernel kills an engine for want of memory, the server goes on, and loads the model again.
//   - The filter of system calls names those of Landlock, which engines are confined by: systemd before version 253 doesn't know
//     them as calls of services.
const unitCommon = `Type=notify
NotifyAccess=main
{env}
{before}ExecStart={program} run --config {config}
ExecReload={program} reload --config {config} --force
KillMode=mixed
TimeoutStartSec=2min
TimeoutStopSec=2min
Restart=on-failure
RestartSec=2s
WatchdogSec=2min
WatchdogSignal=SIGABRT
OOMPolicy=continue
LimitNOFILE=1048576
LimitMEMLOCK=infinity
UMask=0077

NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp
SystemCallErrorNumber=EPERM
`

// unitSystem is what needs the rights of the system's manager. Left out is what GPUs need: their devices (PrivateDevices,
// DevicePolicy, and ProtectClock, which allows the clock's device and so no other), /proc/driver and /proc/meminfo (ProcSubset), and
// memory that is written and then executed, in which their drivers compile programs (MemoryDenyWriteExecute). A network is what a server
// is for (PrivateNetwork, IPAddressDeny), and ports below 1024 need a capability, which a namespace of users wouldn't give (PrivateUsers).
const unitSystem = `User=lmcaddy
Group=lmcaddy
StateDirectory=lmcaddy
StateDirectoryMode=0700
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
RestrictNamespaces=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
`

// modprobe makes the devices of NVIDIA's GPUs, which CUDA can't do in a service without privileges. A machine without the
// program has no such GPUs, or their devices are made by other means.
const modprobe = "ExecStartPre=-+/usr/bin/nvidia-modprobe -c 0 -u\n"

func (s Service) unit(userHome string) string {
	word := func(path string) string { return strings.ReplaceAll(unitWord(path, s.Scope, userHome), "$", "$$") }
	env := "Environment=" + unitWord("LMCADDY_HOME="+s.Home, s.Scope, userHome)
	before, after, target, how := "", "", "default.target", "systemctl --user edit lmcaddy"
	file := filepath.Join(s.Home, "environment")
	head := ""
	if s.Scope == System {
		before, after, target, how = modprobe, unitSystem, "multi-user.target", "systemctl edit lmcaddy"
		file = filepath.Join(filepath.Dir(s.Config), "environment")
		head = "Wants=network-online.target\nAfter=network-online.target\n"
	} else if s.Path != "" {
		env += "\nEnvironment=" + unitWord("PATH="+s.Path, s.Scope, userHome)
	}
	env += "\nEnvironmentFile=-" + unitPath(file, s.Scope, userHome)
	common := strings.NewReplacer("{env}", env, "{before}", before, "{program}", word(s.Program), "{config}",
		word(s.Config)).Replace(unitCommon)
	return "# " + mark + ". To change it, use \"" + how + "\".\n" + `[Unit]
Description=lmcaddy model server
Documentation=https://github.com/lmcaddy/lmcaddy
` + head + `StartLimitIntervalSec=5min
StartLimitBurst=10

[Service]
` + common + after + `
[Install]
WantedBy=` + target + "\n"
}

// unitPath returns a path as units have it: %h stands for the user's folder, and other percent signs are doubled.
func unitPath(path string, scope Scope, userHome string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if scope == System {
		return path
	}
	home := strings.ReplaceAll(userHome, "%", "%%")
	before, rest, ok := strings.Cut(path, home+string(filepath.Separator))
	if !ok || before != "" && !strings.HasSuffix(before, "=") && !strings.HasSuffix(before, ":") {
		return path
	}
	return before + "%h/" + rest
}

// unitWord quotes a word of a command or of an environment. In a command, $ starts a variable as well.
func unitWord(word string, scope Scope, userHome string) string {
	word = unitPath(word, scope, userHome)
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t\"'\\;") {
		return `"` + quoted + `"`
	}
	return word
}

// mark is in every file that Install writes. A file without it is the user's own.
const mark = `Written by "lmcaddy service install"`

// put writes a definition, unless there is one that somebody else has written.
func put(path, text string, force bool) error {
	if err := checkOurs(path, force); err != nil {
		return err
	}
	return write(path, text)
}

// isOurs reports whether a file was written by Install, or doesn't exist.
func isOurs(path string) bool {
	there, err := os.ReadFile(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return strings.Contains(string(there), mark)
}

// checkOurs refuses to change what somebody else has written, unless that is forced.
func checkOurs(path string, force bool) error {
	if isOurs(path) || force {
		return nil
	}
	return fmt.Errorf("%s was not written by \"lmcaddy service install\": move it away, or use --force", path)
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the folders of services are public
		return err
	}
	return atomicfile.WriteFile(path, 0o644, atomicfile.Text(text))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Caddyfile returns the Caddyfile of a service that has none yet.
func Caddyfile(goos string) string {
	log := ""
	if goos != "linux" { // elsewhere nothing keeps what a service prints
		log = `
	log {
		output file {env.LMCADDY_HOME}/logs/lmcaddy.log {
			roll_size 20MiB
			roll_keep 5
		}
	}`
	}
	return `# The configuration of the lmcaddy service. "lmcaddy service restart" applies changes.
{
	grace_period 15s` + log + `
	lm {
		list_models all # GET /v1/models lists every model, not only those that are loaded
	}
}

http://:1234 {
	bind 127.0.0.1 # Only this machine can connect. Before other machines may, put lm_auth before lm_api.
	lm_api
}
`
}

// WriteCaddyfile writes the Caddyfile of a service if there is none. It reports whether it did.
func (h Host) WriteCaddyfile(s Service) (bool, error) {
	path := h.Root + s.Config
	if exists(path) {
		return false, nil
	}
	if err := write(path, Caddyfile(h.OS)); err != nil {
		return false, err
	}
	if h.OS != "darwin" || h.UID != 0 || h.UserName == "root" {
		return true, nil
	}
	// Root has written it into the home of the user as whom a daemon of macOS runs.
	who, err := user.Lookup(h.UserName)
	if err != nil {
		return true, err
	}
	var uid, gid int
	if _, err := fmt.Sscan(who.Uid+" "+who.Gid, &uid, &gid); err != nil {
		return true, err
	}
	return true, os.Lchown(path, uid, gid)
}
