package llamaserver

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/lmcaddy/lmcaddy/supervisor"
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

// first returns the first of the names that the build knows, or "".
func (f flags) first(names ...string) string {
	for _, flag := range names {
		if f.has(flag) {
			return flag
		}
	}
	return ""
}

// deviceLine matches a line of --list-devices: "  CUDA0: NVIDIA GeForce RTX 3090 (24135 MiB, 23880 MiB free)".
var deviceLine = regexp.MustCompile(`(?m)^\s+(\w+): .*\((\d+) MiB, \d+ MiB free\)`)

// devicesOf parses the output of --list-devices. Apple's devices, and those on the processor itself, share the machine's
// memory. The result is never nil.
func devicesOf(list string) []supervisor.Device {
	devices := []supervisor.Device{}
	for _, m := range deviceLine.FindAllStringSubmatch(list, -1) {
		mebibytes, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			continue
		}
		isUnified := strings.HasPrefix(m[1], "MTL") || strings.HasPrefix(m[1], "Metal") || strings.HasPrefix(m[1], "BLAS") || strings.HasPrefix(m[1], "CPU")
		devices = append(devices, supervisor.Device{Name: m[1], Memory: mebibytes << 20, Unified: isUnified})
	}
	return devices
}
