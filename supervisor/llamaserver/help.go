package llamaserver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// flagNames matches the names of a flag, at the beginning of a line of the help.
var flagNames = regexp.MustCompile(`^(?:--?[a-zA-Z][\w-]*,?\s+)+`)

// flagsOf returns the flags in the help, with their descriptions. A line begins with the names of a flag, separated by
// commas; indented lines continue the description. Removed flags, which the help lists as well, are left out.
func flagsOf(help string) flags {
	known := flags{}
	var names []string
	for line := range strings.Lines(help) {
		if head := flagNames.FindString(line); head != "" {
			names = strings.FieldsFunc(head, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
			line = strings.TrimPrefix(line, head)
			if strings.Contains(line, "has been removed") {
				names = nil
			}
		}
		for _, name := range names {
			known[name] = strings.TrimSpace(known[name] + " " + strings.TrimSpace(line))
		}
	}
	return known
}

// flags are the flags of a build, with their descriptions.
type flags map[string]string

func (f flags) has(flag string) bool {
	_, ok := f[flag]
	return ok
}

func (f flags) first(names ...string) string {
	for _, flag := range names {
		if f.has(flag) {
			return flag
		}
	}
	return ""
}

// deviceLine matches a line of --list-devices: "  CUDA0: NVIDIA GeForce RTX 3090 (24135 MiB, 23880 MiB free)".
var deviceLine = regexp.MustCompile(`(?m)^\s+(\w+): (.*) \((\d+) MiB, (\d+) MiB free\)`)

// sharedLine matches what the Vulkan backend says at the highest level of the log about a device that shares the machine's memory:
// "ggml_vulkan: 0 = AMD Radeon 780M (RADV PHOENIX) (radv) | uma: 1 | fp16: 1 | …".
var sharedLine = regexp.MustCompile(`(?m)ggml_vulkan: (\d+) = .* \| uma: 1 \|`)

// sharedTitles are parts of the names of devices of CUDA that share the machine's memory.
var sharedTitles = []string{"Orin", "Xavier", "Tegra", "Thor", "GB10"}

// contextBytes is what a process takes of a device of CUDA or ROCm besides its buffers: 604 MiB were measured on an H200.
const contextBytes = 604 << 20

// ListDevices returns the arguments that list the devices. Which of them share the machine's memory is said only at the highest
// level of the log.
func (p *Process) ListDevices(b process.Build) []string {
	switch known := flags(b.Flags); {
	case !known.has("--list-devices"):
		return nil
	case strings.Contains(known["-lv"], "5: "):
		return []string{"-lv", "5", "--list-devices"}
	default:
		return []string{"--list-devices"}
	}
}

// Devices parses the output of --list-devices. Apple's devices, those on the processor itself, and GPUs within a processor share the
// machine's memory. The result is never nil.
func (p *Process) Devices(list string) []process.Device {
	var shared []string
	for _, m := range sharedLine.FindAllStringSubmatch(list, -1) {
		shared = append(shared, "Vulkan"+m[1])
	}
	devices := []process.Device{}
	for _, m := range deviceLine.FindAllStringSubmatch(list, -1) {
		total, err := strconv.ParseInt(m[3], 10, 40)
		free, failed := strconv.ParseInt(m[4], 10, 40)
		if err != nil || failed != nil {
			continue
		}
		d := process.Device{Name: m[1], Title: m[2], Memory: total << 20, Free: free << 20}
		isNamed := func(title string) bool { return strings.Contains(d.Title, title) }
		switch kind := strings.TrimRight(d.Name, "0123456789"); kind {
		case "CUDA", "ROCm", "MUSA":
			d.Context = contextBytes
			d.Unified = slices.ContainsFunc(sharedTitles, isNamed)
		case "MTL", "Metal", "BLAS", "CPU":
			d.Unified = true
		default:
			d.Unified = slices.Contains(shared, d.Name)
		}
		devices = append(devices, d)
	}
	return devices
}
