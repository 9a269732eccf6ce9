package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// rpcWorkerFlags are the flags of `lmcaddy rpc-worker`.
type rpcWorkerFlags struct {
	listen              string
	threads             int
	devices             []string
	noCache             bool
	allowPublic, noCage bool
}

// defineRPCWorker defines `lmcaddy rpc-worker`.
func defineRPCWorker(cmd *cobra.Command) {
	cmd.Long = `Runs llama.cpp's worker on this machine until it is interrupted. A model that fits no single machine can use several
workers: name them in the model's block of the server's Caddyfile, as "rpc 10.0.0.3:50052 10.0.0.4:50052". The
worker needs no model file and no server of its own, but the same release of llama.cpp as the server's.

The worker knows no passwords and encrypts nothing: who reaches its address can use it, and read what is computed there.
So it listens only on private addresses. Keep it in a network of your own, such as WireGuard.

It computes for one model at a time.`
	cmd.Example = `  lmcaddy rpc-worker --listen 10.0.0.3
  lmcaddy rpc-worker --listen 10.0.0.3:50053 --threads 8 --no-cache`
	cmd.Args = cobra.NoArgs
	cmd.SilenceUsage = true
	f := new(rpcWorkerFlags)
	flags := cmd.Flags()
	flags.StringVarP(&f.listen, "listen", "l", "127.0.0.1", "the IPv4 address to listen on, with a port unless it is 50052")
	flags.IntVar(&f.threads, "threads", 0, "threads that compute, without a GPU (default: one for each processor)")
	flags.StringSliceVar(&f.devices, "device", nil, "a device to compute on, as the engine calls it, such as CUDA0 (may be repeated; default: all GPUs, or else the processor)")
	flags.BoolVar(&f.noCache, "no-cache", false, "keep no tensors on the disk: the weights are then sent with every load")
	flags.BoolVar(&f.allowPublic, "allow-public", false, "listen on an address that isn't private, too")
	flags.BoolVar(&f.noCage, "no-sandbox", false, "run the worker without a sandbox")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := interruptible(cmd)
		defer stop()
		return f.run(ctx, cmd)
	}
}

func (f *rpcWorkerFlags) run(ctx context.Context, cmd *cobra.Command) error {
	host, port, err := f.address(ctx)
	if err != nil {
		return err
	}
	dir, err := home.FromEnvironment()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	found, err := runtimes.Open(dir.Runtimes(), log).Find(runtimes.LlamaCpp, "")
	if err != nil {
		return err
	}
	path := runtimes.WorkerOf(found.Path)
	if path == "" {
		return fmt.Errorf("the runtime of %s has no worker: %s", found.Path, inWords(`run "lmcaddy runtime get llama.cpp", which adds it if its source has one`))
	}
	if f.threads < 0 {
		return errors.New("--threads: it must be at least 1")
	}
	w := supervisor.RPCWorker{
		Path: path, Root: runtimes.RootOf(found.Path), Host: host, Port: port, Threads: cmp.Or(f.threads, runtime.NumCPU()), Devices: f.devices,
		Unconfined: f.noCage,
	}
	if !f.noCache {
		w.Cache = dir.WorkerCache()
	}
	told := workerLines{out: cmd.ErrOrStderr(), worker: &w}
	return w.Run(ctx, told.line, log)
}

// address returns where to listen. A name stands for its first IPv4 address.
func (f *rpcWorkerFlags) address(ctx context.Context) (host string, port int, _ error) {
	host, number, err := net.SplitHostPort(f.listen)
	if err != nil {
		host, number = f.listen, strconv.Itoa(supervisor.WorkerPort)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("--listen: %q is not a port: give a number from 1 to 65535, such as %d", number, supervisor.WorkerPort)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil || len(found) == 0 {
		return "", 0, fmt.Errorf("--listen: %q is neither an IPv4 address of this machine nor a name that has one, and the worker has no IPv6", host)
	}
	ip := found[0].Unmap()
	if !f.allowPublic && !supervisor.IsPrivateAddress(ip) {
		return "", 0, fmt.Errorf("--listen: %s isn't a private address, and the worker knows no passwords: who reaches it can use it. Give the private address of this machine; or, if a firewall protects it, --allow-public", ip)
	}
	return ip.String(), int(n), nil
}

// workerLines shows the output of a worker, except for what it says about each connection.
type workerLines struct {
	out    io.Writer
	worker *supervisor.RPCWorker
}

// chatter are parts of lines that tell an operator nothing.
var chatter = []string{"failed to enumerate", "load_backend: ", "Accepted client connection", "Client connection closed", "recv returned 0", "endpoint  ", "transport  ", "local cache  "}

func (l workerLines) line(line string) {
	if version, ok := strings.CutPrefix(line, "Starting RPC server "); ok {
		_, _ = terminal.Printf(l.out, `The worker (protocol %s) listens on %s:%d. Sandbox: %s.
It knows no passwords and encrypts nothing: keep its address in a private network.
`, version, l.worker.Host, l.worker.Port, l.worker.Sandbox())
		return
	}
	if strings.HasPrefix(line, "!!") || strings.HasPrefix(line, "WARNING: Host") || strings.HasPrefix(line, "         ") ||
		slices.ContainsFunc(chatter, func(part string) bool { return strings.Contains(line, part) }) {
		return
	}
	_, _ = terminal.Println(l.out, line)
}
