// Package vram reads how much of their memory GPUs have free, from their drivers: NVIDIA's program nvidia-smi, and the files of amdgpu in
// sysfs. Both are far quicker than an engine, which needs a context on each GPU to find it out. Other GPUs aren't reported.
package vram

import (
	"context"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// GPU is a GPU with memory of its own.
type GPU struct {
	Name        string // the maker's; empty: unknown
	Total, Free int64  // bytes
}

// Read returns the GPUs, NVIDIA's in the order of their bus addresses, then AMD's in the order of their names.
func Read(ctx context.Context) []GPU {
	for _, program := range []string{"nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"} {
		if path, err := exec.LookPath(program); err == nil {
			return append(nvidia(ctx, path), amd(drm)...)
		}
	}
	return amd(drm)
}

const drm = "/sys/class/drm"

// nvidia asks nvidia-smi, which comes with the driver.
func nvidia(ctx context.Context, program string) []GPU {
	out, err := exec.CommandContext(ctx, program, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil
	}
	rows := csv.NewReader(strings.NewReader(string(out)))
	rows.TrimLeadingSpace = true
	all, err := rows.ReadAll()
	if err != nil {
		return nil
	}
	var gpus []GPU
	for _, row := range all {
		if len(row) != 3 {
			continue
		}
		total, err := strconv.ParseInt(row[1], 10, 40)
		free, failed := strconv.ParseInt(row[2], 10, 40)
		if err == nil && failed == nil {
			gpus = append(gpus, GPU{row[0], total << 20, free << 20})
		}
	}
	return gpus
}

func amd(folder string) []GPU {
	files, _ := filepath.Glob(filepath.Join(folder, "card*", "device", "mem_info_vram_total")) // the pattern is valid
	var gpus []GPU
	for _, file := range files {
		total, ok := number(file)
		used, known := number(filepath.Join(filepath.Dir(file), "mem_info_vram_used"))
		if ok && known {
			gpus = append(gpus, GPU{Total: total, Free: max(0, total-used)})
		}
	}
	return gpus
}

func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
