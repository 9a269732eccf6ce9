package caddymodule

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/node"
)

// The defaults.
const (
	defaultIdleTTL      = time.Hour
	defaultQueue        = 512
	defaultMemoryBudget = "85%"
	defaultGPUMemory    = "95%"
	mostBodyMemory      = 1 << 40
)

// loading puts the options about loading and unloading models into the settings.
func (a *App) loading() error {
	s := &a.settings
	s.IdleTTL, s.Queue = defaultIdleTTL, defaultQueue
	if a.IdleTTL != nil {
		s.IdleTTL = time.Duration(*a.IdleTTL)
	}
	if a.Queue != nil {
		s.Queue = *a.Queue
	}
	s.MaxDownloads = a.MaxDownloads
	s.MaxLoaded, s.BodyMemory, s.Inspect = a.MaxLoaded, a.BodyMemory, a.Inspect
	s.PrivatePrompts = a.PromptCache == "private"
	s.AbandonLoads = a.AbandonedLoads == "stop"
	s.StallTimeout, s.SlowClient = time.Duration(a.StallTimeout), time.Duration(a.SlowClientTimeout)
	var err error
	parse := func(word, value string) node.Budget {
		budget, failed := ParseBudget(word, value)
		err = cmp.Or(err, failed)
		return budget
	}
	s.MemoryBudget = parse("memory_budget", cmp.Or(a.MemoryBudget, defaultMemoryBudget))
	s.GPUMemory = node.GPUMemory{Each: parse("gpu_memory", cmp.Or(a.GPUMemory, defaultGPUMemory))}
	for name, budget := range a.GPUMemories {
		if s.GPUMemory.ByName == nil {
			s.GPUMemory.ByName = map[string]node.Budget{}
		}
		s.GPUMemory.ByName[name] = parse("gpu_memory "+name, budget)
	}
	return err
}

// ParseBudget reads the options memory_budget and gpu_memory: a share, such as 85%, or a size, such as 20GiB.
func ParseBudget(word, s string) (node.Budget, error) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(n > 0 && n <= 100) {
			return node.Budget{}, fmt.Errorf("%s: %q is not a share between 0%% and 100%%", word, s)
		}
		return node.Budget{Share: n / 100}, nil
	}
	n, err := humanize.ParseBytes(s)
	if err != nil || n < 1 || n > 1<<60 || isBare(s, n) {
		return node.Budget{}, fmt.Errorf("%s: %q is neither a share, such as 85%%, nor a size with its unit, such as 20GiB", word, s)
	}
	return node.Budget{Bytes: int64(n)}, nil
}

// settings returns the model's settings as the node has them.
func (m Model) settings() node.ModelSettings {
	s := node.ModelSettings{
		Aliases: m.Aliases, ContextLength: m.ContextLength, Parallel: m.Parallel, Draft: m.DraftModel,
		Preload: m.Preload, Pinned: m.Pin, Warm: m.Warm, Args: m.Args, Devices: m.Devices, GPULayers: m.GPULayers,
	}
	if m.TTL != nil {
		ttl := time.Duration(*m.TTL)
		s.TTL = &ttl
	}
	return s
}

// loadingOption reads the options about loading and unloading models. It returns false for any other.
func (a *App) loadingOption(d *caddyfile.Dispenser) (bool, error) {
	switch d.Val() {
	case "idle_ttl":
		a.IdleTTL = new(caddy.Duration)
		return true, duration(d, a.IdleTTL)
	case "max_loaded":
		return true, wholeNumber(d, 0, &a.MaxLoaded)
	case "max_downloads":
		return true, wholeNumber(d, 1, &a.MaxDownloads)
	case "memory_budget":
		if err := oneArg(d, &a.MemoryBudget); err != nil {
			return true, err
		}
		_, err := ParseBudget("memory_budget", a.MemoryBudget)
		return true, wrap(d, err)
	case "gpu_memory":
		return true, a.gpuMemory(d)
	case "queue":
		a.Queue = new(int)
		return true, wholeNumber(d, 0, a.Queue)
	case "body_memory":
		return true, size(d, &a.BodyMemory, mostBodyMemory)
	case "inspect":
		return true, wholeNumber(d, 0, &a.Inspect)
	case "stall_timeout":
		return true, timeout(d, &a.StallTimeout)
	case "slow_client_timeout":
		return true, timeout(d, &a.SlowClientTimeout)
	default:
		return false, nil
	}
}

// gpuMemory reads a budget of all GPUs, or the name of one and its budget.
func (a *App) gpuMemory(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch len(args) {
	case 1:
		a.GPUMemory = args[0]
	case 2:
		if a.GPUMemories == nil {
			a.GPUMemories = map[string]string{}
		}
		a.GPUMemories[args[0]] = args[1]
	default:
		return d.ArgErr()
	}
	_, err := ParseBudget("gpu_memory", args[len(args)-1])
	return wrap(d, err)
}

// wrap adds the line of the Caddyfile to an error.
func wrap(d *caddyfile.Dispenser, err error) error {
	if err == nil {
		return nil
	}
	return d.WrapErr(err)
}

// loneWord reads an option without arguments.
func loneWord(d *caddyfile.Dispenser, to *bool) error {
	*to = true
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

func duration(d *caddyfile.Dispenser, to *caddy.Duration) error {
	word, value := d.Val(), ""
	if err := oneArg(d, &value); err != nil {
		return err
	}
	t, err := caddy.ParseDuration(value)
	if err != nil || t < 0 {
		return d.Errf("%s: %q is not a time, such as 60m, 12h or 0", word, value)
	}
	*to = caddy.Duration(t)
	return nil
}

// timeout reads a duration greater than 0. For other options, 0 means no limit; here it would mean no time at all.
func timeout(d *caddyfile.Dispenser, to *caddy.Duration) error {
	word := d.Val()
	if err := duration(d, to); err != nil {
		return err
	}
	if *to == 0 {
		return d.Errf("%s: it must be longer than 0: for a patience almost without end, give a long one, such as 24h", word)
	}
	return nil
}

func wholeNumber(d *caddyfile.Dispenser, least int, to *int) error {
	word, value := d.Val(), ""
	if err := oneArg(d, &value); err != nil {
		return err
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		return d.Errf("%s: %q is not a whole number of at least %d", word, value, least)
	}
	*to = n
	return nil
}
