package process

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// SandboxOff is the value of Info.Sandbox if the sandbox is switched off in the configuration, and the beginning of the value
// if the engine can't run in it.
const SandboxOff = "off"

// SandboxState describes the sandbox of this machine, or why there is none.
func SandboxState() string {
	state, err := sandbox.State()
	if err != nil {
		return err.Error()
	}
	return state
}

func (l *Launch) isConfined() bool {
	_, err := sandbox.State()
	return err == nil && !l.Unconfined && l.NoSandbox == ""
}

// confine prepares the sandbox of a launch. The box is nil if it gets none. The state is a description for people.
func (p *Process) confine(l *Launch, cmd *Cmd, b Build) (box *sandbox.Box, state string, err error) {
	state = SandboxState()
	switch {
	case l.NoSandbox != "":
		return nil, SandboxOff + ": " + l.NoSandbox, nil
	case l.Unconfined:
		return nil, SandboxOff, nil
	case !l.isConfined():
		p.host.tellOnce.Do(func() { p.log.Info("engines run without a sandbox", "sandbox", state) })
		return nil, state, nil
	}
	if l.Sandbox == schedule.SandboxWide {
		state += ", wide"
	}
	box, err = sandbox.Prepare(l.rules(cmd, b))
	p.confined = err == nil
	return box, state, err
}

func (l *Launch) rules(cmd *Cmd, b Build) sandbox.Rules {
	rules := cmd.Needs
	rules.Read = withShards(slices.Concat(l.files(), rules.Read))
	rules.Execute = append(slices.Clone(rules.Execute), l.Readable...)
	rules.Write = slices.Clone(rules.Write)
	rules.Read = append(rules.Read, systemRead...)
	for dir := range strings.SplitSeq(os.Getenv("LD_LIBRARY_PATH"), ":") {
		if filepath.IsAbs(dir) {
			rules.Read = append(rules.Read, dir)
		}
	}
	rules.Devices = append(slices.Clone(rules.Devices), systemDevices...)
	rules.Execute = append(rules.Execute, expand(systemLoaders)...)
	allowExecutable(&rules, cmd.Path, b.Root)
	if b.mayUseGPU() || len(l.On.Devices) > 0 {
		allowGPU(&rules, l.Sandbox)
	}
	for _, dir := range []string{l.Folder, l.Cache, l.States} {
		if dir != "" {
			rules.Write = append(rules.Write, dir)
		}
	}
	if l.Port != 0 {
		rules.Bind = append(slices.Clone(rules.Bind), l.Port)
	}
	return rules
}

// firstShard matches the end of the path of a split model's first part.
var firstShard = regexp.MustCompile(`-00001-of-\d{5}\.gguf$`)

// withShards adds the other parts of split models. Engines find them by the name of the first.
func withShards(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if at := firstShard.FindStringIndex(path); at != nil {
			shards, _ := filepath.Glob(quoteGlob(path[:at[0]]) + "-?????" + path[at[0]+len("-00001"):])
			all = append(all, shards...)
		}
	}
	return all
}

var quoteGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace

// mayUseGPU reports whether an engine may use devices: it has listed some, or can't list them.
func (b Build) mayUseGPU() bool { return len(b.Devices) > 0 || b.Devices == nil }

// denial matches messages of programs and libraries that were denied access, or that found no device.
var denial = regexp.MustCompile(`(?i)permission denied|not permitted|address family not supported|` +
	`cannot open shared object|no cuda-capable device|failed to initiali[sz]e|initializationfailed`)

// sandboxHint says how to find out whether the sandbox made a load fail.
const sandboxHint = ". It ran in the sandbox: if it needs more than that allows, name what it needs by sandbox_read " +
	"in its engine block, or add `sandbox off` there"

// startOnThread starts a command on a dedicated thread with blocked signals, whose files only this user can read, inside the box unless
// that is nil. The engine inherits all of this. The thread lives until end is called.
func startOnThread(box *sandbox.Box, cmd *exec.Cmd) (end func(), err error) {
	return child.StartOnThread(func() error {
		if err := blockSignals(); err != nil {
			return err
		}
		hideFiles()
		if box != nil {
			return box.Start(cmd)
		}
		return cmd.Start()
	})
}

// What any dynamically linked program needs. No folder here may contain private files: there is no /etc and no home, and of
// /usr only what isn't data, since models may be stored there.
var (
	systemRead = []string{
		"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
		"/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store",
		"/usr/share/locale", "/usr/share/zoneinfo", "/etc/localtime",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies", // OpenSSL fails to initialize without them
		"/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory",
		"/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/dev/urandom", "/dev/random", "/dev/zero",
	}
	systemDevices = []string{"/dev/null"}
	// systemLoaders load dynamically linked programs. Those that a start script runs aren't known in advance.
	systemLoaders = []string{"/lib64/ld-*.so*", "/lib/ld-*.so*", "/lib/*-linux-*/ld-*.so*"}
	// scriptTools are what a start script, besides its shell, may run to find its own location.
	scriptTools = []string{"sh", "bash", "env", "readlink", "realpath", "dirname", "basename"}
)

const sharedMemory = "/dev/shm"

// What GPUs need, according to their vendors' documentation.
var (
	gpuDevices = []string{
		"/dev/nvidia*", "/dev/nvidia-caps", // with /dev/nvidiactl, -uvm, -uvm-tools, -modeset
		"/dev/dri", "/dev/kfd", "/dev/accel", // Mesa, ROCm, Intel; neural processors
		"/dev/nvmap", "/dev/nvhost*", "/dev/nvgpu", // Jetson
		"/dev/mali*", // Arm
		"/dev/dxg",   // WSL
		sharedMemory, // between processes of ROCm and CUDA
	}
	gpuRead = []string{
		"/proc", // CUDA reads /proc/self, whose path isn't known before the start. The kernel protects other processes' private files.
		"/sys",  // devices and their topology
		"/etc/vulkan", "/etc/OpenCL", "/etc/glvnd", "/etc/egl", "/etc/drirc", "/etc/nvidia", "/etc/amd",
		"/usr/share/vulkan", "/usr/share/glvnd", "/usr/share/egl", "/usr/share/drirc.d", "/usr/share/libdrm", "/usr/share/nvidia",
		"/usr/local/etc/vulkan", "/usr/local/share/vulkan", // the loader looks there, too
		"/usr/local/nvidia", // Kubernetes: libraries, and the files that name them to Vulkan's and EGL's loaders
		"/usr/local/cuda*", "/opt/cuda*", "/opt/rocm*", "/opt/amdgpu*", "/opt/intel",
		"/run/opengl-driver", "/run/opengl-driver-32", // NixOS
	}
)

// allowGPU allows what the drivers of GPUs need. CUDA names its threads below /proc, and binds a socket of its own.
// Even at the wide level it doesn't allow all of /dev, where the user's terminals are and, for root, the disks and the memory.
func allowGPU(r *sandbox.Rules, level schedule.SandboxLevel) {
	r.Devices = append(r.Devices, expand(gpuDevices)...)
	r.SeqPacket = true
	if level == schedule.SandboxWide {
		r.Read = append(r.Read, "/")
		r.Write = append(r.Write, sharedMemory)
		r.Self = "/proc/self"
		return
	}
	r.Read = append(r.Read, expand(gpuRead)...)
	r.Self = "/proc/self/task"
}

func expand(patterns []string) []string {
	var paths []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	return paths
}

// allowExecutable allows an engine's executable and its libraries: all of root, the folder of its runtime; without one, only
// the libraries next to it, since its folder may contain anything else.
func allowExecutable(r *sandbox.Rules, path, root string) {
	r.Execute = append(r.Execute, path)
	if root != "" {
		r.Execute = append(r.Execute, root)
	}
	paths := []string{path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		paths = append(paths, target)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		r.List = append(r.List, dir) // the engine searches this folder for backends
		r.Read = append(r.Read, expand([]string{quoteGlob(dir) + "/*.so*"})...)
		if filepath.Base(dir) == "bin" {
			prefix := filepath.Dir(dir)
			r.Read = append(r.Read, filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"))
		}
	}
	if engine.IsScript(path) {
		for _, tool := range scriptTools {
			r.Execute = append(r.Execute, "/bin/"+tool, "/usr/bin/"+tool)
		}
		return
	}
	if loader := loaderOf(path); loader != "" {
		r.Execute = append(r.Execute, loader)
	}
}

// loaderOf returns the program that loads an executable; empty: none.
func loaderOf(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP && part.Filesz < 4096 {
			name := make([]byte, part.Filesz)
			if _, err := part.ReadAt(name, 0); err == nil {
				return strings.TrimRight(string(name), "\x00")
			}
		}
	}
	return ""
}

// DeviceReport is what an engine has found to compute on.
type DeviceReport struct {
	Usable     []Device              // in a launch; nil: it can't list them
	Outside    []Device              // without a sandbox
	Hidden     []string              // names of GPUs that are only found outside
	Sandbox    schedule.SandboxLevel // in which the most is found
	Unconfined bool                  // a launch has no sandbox
}

// FindDevices lists the devices of an engine outside the sandbox, unless the build was probed just now, and, unless the sandbox is
// off, inside. If the sandbox hides a GPU, the wide level is tried.
func FindDevices(ctx context.Context, e Program, b Build, isNew bool, box schedule.Toggle, readable []string) DeviceReport {
	lister, ok := e.(DeviceLister)
	if !ok || lister.ListDevices(b) == nil {
		return DeviceReport{Usable: b.Devices, Outside: b.Devices, Unconfined: box == schedule.Off}
	}
	r := DeviceReport{Outside: b.Devices}
	if !isNew {
		r.Outside = listDevices(ctx, lister, b, nil, nil)
	}
	r.Usable = r.Outside
	if _, err := sandbox.State(); err != nil || box == schedule.Off {
		r.Unconfined = true
		return r
	}
	if !slices.ContainsFunc(r.Outside, func(d Device) bool { return !d.IsCPU() }) {
		return r
	}
	b.Devices = r.Outside // the build may have been looked at before its driver was there
	for _, level := range []schedule.SandboxLevel{schedule.SandboxNarrow, schedule.SandboxWide} {
		inside := listDevices(ctx, lister, b, &level, readable)
		hidden := missing(r.Outside, inside)
		if level == schedule.SandboxNarrow || len(hidden) < len(r.Hidden) {
			r.Usable, r.Hidden, r.Sandbox = inside, hidden, level
		}
		if len(hidden) == 0 {
			break
		}
	}
	return r
}

// ListDevices has an engine list its devices outside the sandbox, with what is free of them; nil: it can't.
func ListDevices(ctx context.Context, e Program, b Build) []Device {
	lister, ok := e.(DeviceLister)
	if !ok || lister.ListDevices(b) == nil {
		return nil
	}
	return listDevices(ctx, lister, b, nil, nil)
}

// missing returns the names of the GPUs that are only in the first list.
func missing(all, some []Device) (names []string) {
	for _, d := range all {
		if !d.IsCPU() && !slices.ContainsFunc(some, func(o Device) bool { return o.Name == d.Name }) {
			names = append(names, d.Name)
		}
	}
	return names
}

// listDevices has the engine list its devices, in a sandbox of a level; nil: in none. What it doesn't list, for whatever reason, it
// doesn't have.
func listDevices(ctx context.Context, lister DeviceLister, b Build, level *schedule.SandboxLevel, readable []string) []Device {
	l := Launch{Spec: &schedule.Spec{Unconfined: level == nil, Readable: readable}}
	if level != nil {
		l.Sandbox = *level
	}
	query := Cmd{Path: b.Path, Args: slices.Concat(b.Args, lister.ListDevices(b)), Env: engine.Environment(b.Script)}
	out, _ := queryConfined(ctx, l, query, b)
	return lister.Devices(out)
}

// queryDelay bounds the wait for the output of a query that has ended.
const queryDelay = 2 * time.Second

// queryConfined runs a command that ends by itself, such as one that lists devices, in the sandbox that a launch gets, with a temporary
// folder instead of the launch's. It returns the output, standard output and error together, also if the command fails or ctx ends. Of
// the launch only what the sandbox is made of counts. A launch without a sandbox gets none here.
func queryConfined(ctx context.Context, l Launch, command Cmd, b Build) (output string, err error) {
	if l.Folder, err = os.MkdirTemp("", shortPrefix); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(l.Folder) }()
	var box *sandbox.Box
	if l.isConfined() {
		if box, err = sandbox.Prepare(l.rules(&command, b)); err != nil {
			return "", fmt.Errorf("the engine's sandbox: %w", err)
		}
		defer box.Close()
	}
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Env = append(command.Env, l.places()...)
	cmd.Dir = l.Folder
	cmd.SysProcAttr = child.OwnGroup()
	cmd.WaitDelay = queryDelay
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	endThread, err := startOnThread(box, cmd)
	defer endThread()
	if err != nil {
		return "", fmt.Errorf("%s can't be started: %w", cmd.Path, err)
	}
	group, _ := child.Adopt(cmd.Process) // after an error, only what it starts may outlive it
	err = cmd.Wait()
	group.Kill()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // rather than the signal that it was ended with
	}
	return out.String(), err
}
