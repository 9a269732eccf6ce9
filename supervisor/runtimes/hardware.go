package runtimes

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds nvidia-smi, which hangs if the driver does.
const probeTimeout = 10 * time.Second

// hardware is what determines the variants that fit.
type hardware struct {
	os, arch string // GOOS and GOARCH
	nvidia   *nvidia
	gpu      bool // there is a GPU, of any make
	vulkan   bool // there is a Vulkan loader and a GPU
}

// nvidia is an NVIDIA GPU with its driver. Zero values are unknown.
type nvidia struct {
	cuda       dotted // newest CUDA version that the driver supports
	capability dotted // lowest compute capability of the GPUs
}

// dotted is a version of two numbers.
type dotted struct{ major, minor int }

func (d dotted) compare(other dotted) int {
	return cmp.Or(cmp.Compare(d.major, other.major), cmp.Compare(d.minor, other.minor))
}

func parseDotted(text string) (dotted, bool) {
	major, minor, found := strings.Cut(strings.TrimSpace(text), ".")
	first, err := strconv.Atoi(major)
	if err != nil {
		return dotted{}, false
	}
	if !found {
		return dotted{first, 0}, true
	}
	second, err := strconv.Atoi(minor)
	return dotted{first, second}, err == nil
}

func (d dotted) String() string { return fmt.Sprintf("%d.%d", d.major, d.minor) }

func detectHardware(ctx context.Context) hardware {
	return hardware{os: runtime.GOOS, arch: runtime.GOARCH, nvidia: detectNVIDIA(ctx), gpu: hasGPU(), vulkan: hasVulkan()}
}

func detectNVIDIA(ctx context.Context) *nvidia {
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nvidiaFromDriver()
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	banner, err := exec.CommandContext(ctx, smi).Output()
	if err != nil {
		return nvidiaFromDriver() // no GPU, or no working driver
	}
	capabilities, _ := exec.CommandContext(ctx, smi, "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	return parseSMI(string(banner), string(capabilities))
}

// The output contains "CUDA Version: 12.4", or "CUDA UMD Version: 13.4" in newer versions.
var smiCUDA = regexp.MustCompile(`CUDA (?:\w+ )?Version:\s*(\d+\.\d+)`)

func parseSMI(banner, capabilities string) *nvidia {
	var gpu nvidia
	if match := smiCUDA.FindStringSubmatch(banner); match != nil {
		gpu.cuda, _ = parseDotted(match[1])
	}
	for line := range strings.Lines(capabilities) {
		capability, ok := parseDotted(line)
		if ok && (gpu.capability == dotted{} || capability.compare(gpu.capability) < 0) {
			gpu.capability = capability
		}
	}
	return &gpu
}

// driverCUDA returns the first release of the newest major CUDA version that a driver supports.
func driverCUDA(driver int) dotted {
	switch {
	case driver >= 580:
		return dotted{13, 0}
	case driver >= 525:
		return dotted{12, 0}
	case driver > 0:
		return dotted{11, 0}
	default:
		return dotted{}
	}
}

// Hardware is what determines which variants of an engine fit this machine.
type Hardware struct {
	Variants    []string // of llama.cpp, best first; the last is the processor's
	DriverFails bool     // nvidia-smi is installed, and fails
}

// HasGPU reports whether there is a GPU with a driver that engines can use.
func (h Hardware) HasGPU() bool { return h.Variants[0] != variantCPU }

// DetectHardware looks for the GPUs of this machine and their drivers. It may take seconds.
func DetectHardware(ctx context.Context) Hardware {
	found := Hardware{Variants: detectHardware(ctx).preference()}
	if smi, err := exec.LookPath("nvidia-smi"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		found.DriverFails = exec.CommandContext(ctx, smi).Run() != nil
	}
	return found
}

// cudaCode is a kind of code that a CUDA library contains.
type cudaCode struct {
	architecture dotted // the compute capability that it is for
	isPTX        bool   // the driver compiles it, for any GPU of this or a higher capability
}

func (c cudaCode) String() string {
	if c.isPTX {
		return c.architecture.String() + " and newer"
	}
	return c.architecture.String()
}

// fits returns an error if this GPU and driver can run none of the codes. A driver compiles PTX of its own version of CUDA and
// older ones only, but runs compiled code of any minor version.
func (n *nvidia) fits(codes []cudaCode, toolkit dotted) error {
	if (n.capability == dotted{}) || len(codes) == 0 {
		return nil // unknown
	}
	isOld := n.cuda != (dotted{}) && n.cuda.compare(toolkit) < 0
	var names []string
	needsCompiling := false
	for _, c := range codes {
		names = append(names, c.String())
		switch {
		case c.isPTX && n.capability.compare(c.architecture) >= 0:
			if !isOld {
				return nil
			}
			needsCompiling = true
		case !c.isPTX && c.architecture.major == n.capability.major && c.architecture.minor <= n.capability.minor:
			return nil
		}
	}
	if needsCompiling {
		return &unfitError{fmt.Errorf("its code for this GPU (compute capability %s) has to be compiled "+
			"by a driver for CUDA %s or later, and this one supports CUDA %s: update the driver",
			n.capability, toolkit, n.cuda)}
	}
	return &unfitError{fmt.Errorf("it has no code for this GPU (compute capability %s), only for: %s",
		n.capability, strings.Join(names, ", "))}
}

// Of a fat binary, of which a section of a library has many: its header, and that of each of its entries.
const (
	fatMagic   = 0xba55ed50
	fatHeader  = 16 // magic, version (2 bytes), size of this header (2 bytes), size of the entries (8 bytes)
	fatEntry   = 32 // kind (2 bytes), 2 bytes, size of this header (4), size of the code (8); the architecture (4 bytes) is at 28
	fatIsPTX   = 1
	fatSection = ".nv_fatbin"
)

// cudaCodes returns the kinds of code in the CUDA backend of a tree of packages, in the order of their architectures. They are read here,
// since only CUDA's toolkit has a program that lists them, and the engine finds out at its first computation, which would abort it.
func cudaCodes(root string) ([]cudaCode, error) {
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*/ggml/backends*/libggml-cuda.so"))
	if err != nil || len(libraries) == 0 {
		return nil, errors.Join(errors.New("the packages have no CUDA backend"), err)
	}
	file, err := elf.Open(libraries[0])
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	section := file.Section(fatSection)
	if section == nil {
		return nil, fmt.Errorf("%s has no section %s", filepath.Base(libraries[0]), fatSection)
	}
	return fatCodes(section, bounded(section.Size))
}

func fatCodes(section io.ReaderAt, size int64) ([]cudaCode, error) {
	var codes []cudaCode
	for at := int64(0); at+fatHeader <= size; {
		var header [fatHeader]byte
		if _, err := section.ReadAt(header[:], at); err != nil {
			return nil, err
		}
		if binary.LittleEndian.Uint32(header[:]) != fatMagic {
			at += 8 // fat binaries are aligned
			continue
		}
		begin := at
		at += int64(binary.LittleEndian.Uint16(header[6:]))
		end := at + bounded(binary.LittleEndian.Uint64(header[8:]))
		for at+fatEntry <= min(end, size) {
			var entry [fatEntry]byte
			if _, err := section.ReadAt(entry[:], at); err != nil {
				return nil, err
			}
			architecture := int(binary.LittleEndian.Uint32(entry[28:]))
			code := cudaCode{dotted{architecture / 10, architecture % 10}, binary.LittleEndian.Uint16(entry[:]) == fatIsPTX}
			if !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
			next := at + int64(binary.LittleEndian.Uint32(entry[4:])) + bounded(binary.LittleEndian.Uint64(entry[8:]))
			if next <= at || next > end {
				return nil, errors.New("a fat binary is damaged")
			}
			at = next
		}
		at = max(at, end, begin+8)
	}
	slices.SortFunc(codes, func(a, b cudaCode) int { return a.architecture.compare(b.architecture) })
	return codes, nil
}

// bounded returns a size of which a sum doesn't overflow.
func bounded(size uint64) int64 { return int64(min(size, 1<<40)) }
