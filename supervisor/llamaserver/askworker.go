package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// How long a worker may take to tell what it has. A worker that is busy is left alone.
const (
	idleTimeout = time.Second     // to show that it is free
	listTimeout = 5 * time.Second // to list its devices
)

// AskWorker has llama-server list the devices of a worker.
func (p *Process) AskWorker(ctx context.Context, address string) (supervisor.WorkerMemory, error) {
	path, err := p.Locate()
	if err != nil {
		return supervisor.WorkerMemory{}, err
	}
	at, err := findWorker(ctx, address, idleTimeout)
	if err != nil {
		return supervisor.WorkerMemory{}, err
	}
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := engine.Ask(listing, path, "--rpc", at, "--list-devices")
	for line := range strings.Lines(list) {
		if signals := ofWorkers(line); len(signals) > 0 {
			return supervisor.WorkerMemory{}, fmt.Errorf("the worker %s: %s", address, signals[0].Text)
		}
	}
	memory := memoryAt(list, at)
	switch {
	case memory.Total > 0:
		return memory, nil
	case listing.Err() != nil:
		return memory, fmt.Errorf("the worker %s doesn't tell what memory it has within %s", address, listTimeout)
	case err != nil:
		return memory, fmt.Errorf("asking the worker %s: %w", address, err)
	default:
		return memory, errors.New("llama-server doesn't list the worker " + address)
	}
}

// workerLine matches a worker's device in the output of --list-devices: "  RPC0: 10.0.0.3:50052 (24105 MiB, 23880 MiB free)".
var workerLine = regexp.MustCompile(`(?m)^\s+RPC\d+: (\S+) \((\d+) MiB, (\d+) MiB free\)`)

// memoryAt adds up the memory of the devices at an address.
func memoryAt(list, address string) (memory supervisor.WorkerMemory) {
	for _, m := range workerLine.FindAllStringSubmatch(list, -1) {
		total, bad := strconv.ParseInt(m[2], 10, 40)
		free, worse := strconv.ParseInt(m[3], 10, 40)
		if m[1] == address && bad == nil && worse == nil {
			memory.Total += total << 20
			memory.Free += free << 20
		}
	}
	return memory
}
