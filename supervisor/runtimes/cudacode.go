package runtimes

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

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

// cudaCodes returns the kinds of code in the CUDA backend of a tree of packages, in the order of their architectures.
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
