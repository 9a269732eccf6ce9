package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/node"
)

func size(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// checkMemory checks how much memory models may take, and which of them can't be loaded for lack of it.
func checkMemory(ctx context.Context, s *Subject) (found findings) {
	total := node.MachineMemory()
	if total == 0 {
		return found.warn("Set memory_budget to a size, such as 20GiB.", "The machine's memory isn't known.")
	}
	if m, err := mem.VirtualMemory(); err == nil && int64(m.Total) > total { //nolint:gosec // less than 1<<63
		found.warn("Its control group has a limit: raise MemoryMax of the systemd unit, or --memory of the container, if models need more.",
			"The machine has %s of memory, and this process may take %s of it.", humanize.Bytes(m.Total), size(total))
	}
	budget := total
	if said := s.setting("memory_budget"); said != "" {
		if b, err := config.Budget(said).Node(); err == nil {
			budget = b.Bytes
			if b.Share > 0 {
				budget = int64(b.Share * float64(total))
			}
		}
		if budget > total {
			found.warn("Lower memory_budget.",
				"memory_budget is %s, and there are %s of memory: models would be swapped to the disk.", said, size(total))
		}
	}
	models, _ := s.models(ctx) // the check of models says why there are none
	if build, err := node.BuiltIn()[0].New(s.setupOf(node.BuiltIn()[0].Name)).Probe(ctx); err == nil {
		for _, d := range build.Devices {
			if !d.Unified && !d.IsCPU() { // memory of its own
				budget += d.Memory
			}
		}
	}
	return append(found, ofSizes(budget, models)...)
}

// ofSizes names the models that don't fit into a budget, the GPUs' memory included, and the largest that does.
func ofSizes(budget int64, models []model) (found findings) {
	var large []string
	largest := model{}
	for _, m := range models {
		switch {
		case m.problem != "":
		case m.size > budget:
			large = append(large, fmt.Sprintf("%s (%s)", m.key, size(m.size)))
		case m.size > largest.size:
			largest = m
		}
	}
	if len(large) > 0 {
		found.warn("Get a smaller quantization of them.", "Too large for the %s of memory that models may take: %s.", size(budget),
			strings.Join(large, ", "))
	}
	switch {
	case largest.key != "":
		found.ok("Models may take %s of memory. The largest that fits is %s.", size(budget), largest.key)
	case len(large) == 0:
		found.ok("Models may take %s of memory.", size(budget))
	}
	return found
}
