package runtimes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// cudaLibrary writes a library that has fat binaries with these kinds of code, and returns its path.
func cudaLibrary(t *testing.T, codes ...cudaCode) string {
	t.Helper()
	little := binary.LittleEndian
	var fat []byte
	for range 2 { // each kernel has one
		var entries []byte
		for _, c := range codes {
			kind := uint16(2)
			if c.isPTX {
				kind = fatIsPTX
			}
			entry := make([]byte, 64+16)
			little.PutUint16(entry, kind)
			little.PutUint32(entry[4:], 64)
			little.PutUint64(entry[8:], 16)
			little.PutUint32(entry[28:], uint32(10*c.architecture.major+c.architecture.minor))
			entries = append(entries, entry...)
		}
		fat = little.AppendUint32(fat, fatMagic)
		fat = little.AppendUint16(fat, 1)
		fat = little.AppendUint16(fat, fatHeader)
		fat = little.AppendUint64(fat, uint64(len(entries)))
		fat = append(append(fat, entries...), make([]byte, 8)...)
	}
	names := "\x00" + fatSection + "\x00.shstrtab\x00"
	const header, sections = 64, 64
	var file bytes.Buffer
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: header,
		Shoff: uint64(header + len(fat) + len(names)), Shentsize: sections, Shnum: 3, Shstrndx: 2,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	must(t, binary.Write(&file, little, h))
	file.Write(fat)
	file.WriteString(names)
	must(t, binary.Write(&file, little, []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: header, Size: uint64(len(fat))},
		{Name: uint32(2 + len(fatSection)), Type: uint32(elf.SHT_STRTAB), Off: uint64(header + len(fat)), Size: uint64(len(names))},
	}))
	path := filepath.Join(t.TempDir(), "libggml-cuda.so")
	must(t, os.WriteFile(path, file.Bytes(), 0o644))
	return path
}

func TestCUDACodes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, err := cudaCodes(root)
	contains(t, err, "no CUDA backend")
	backends := filepath.Join(root, "usr/lib/x86_64-linux-gnu/ggml/backends0")
	must(t, os.MkdirAll(backends, 0o755))
	must(t, os.Rename(cudaLibrary(t, cudaCode{dotted{9, 0}, true}, cudaCode{dotted{8, 6}, false}, cudaCode{dotted{12, 0}, true}), filepath.Join(backends, "libggml-cuda.so")))
	codes, err := cudaCodes(root)
	must(t, err)
	same(t, "codes", len(codes), 3)
	for i, want := range []string{"8.6", "9.0 and newer", "12.0 and newer"} {
		same(t, "code", codes[i].String(), want)
	}
	must(t, os.WriteFile(filepath.Join(backends, "libggml-cuda.so"), []byte("hello"), 0o644))
	if codes, err := cudaCodes(root); err == nil {
		t.Errorf("read %v", codes)
	}
	for name, damage := range map[string]func([]byte){
		"an entry without end":     func(fat []byte) { binary.LittleEndian.PutUint64(fat[fatHeader+8:], 1<<63) },
		"an entry that goes round": func(fat []byte) { clear(fat[fatHeader+4 : fatHeader+16]) },
	} {
		fat := make([]byte, 96)
		binary.LittleEndian.PutUint32(fat, fatMagic)
		binary.LittleEndian.PutUint16(fat[6:], fatHeader)
		binary.LittleEndian.PutUint64(fat[8:], 80)
		damage(fat)
		if codes, err := fatCodes(bytes.NewReader(fat), int64(len(fat))); err == nil {
			t.Errorf("%s: read %v", name, codes)
		}
	}
	empty := binary.LittleEndian.AppendUint32(nil, fatMagic) // a header that says that it has no size
	codes, err = fatCodes(bytes.NewReader(append(empty, make([]byte, 60)...)), 64)
	must(t, err)
	same(t, "codes of an empty one", len(codes), 0)
}

func TestFits(t *testing.T) {
	t.Parallel()
	toolkit := dotted{12, 4}
	codes := []cudaCode{{dotted{5, 0}, true}, {dotted{7, 5}, true}, {dotted{8, 6}, false}, {dotted{9, 0}, true}}
	for _, test := range []struct {
		name       string
		gpu        nvidia
		complaints []string
	}{
		{"compiled for it", nvidia{dotted{12, 4}, dotted{8, 6}}, nil},
		{"compiled for an older one of its kind", nvidia{dotted{12, 0}, dotted{8, 9}}, nil},
		{"compiled for a newer one of its kind, and PTX", nvidia{dotted{12, 4}, dotted{8, 0}}, nil},
		{"compiled for a newer one of its kind alone", nvidia{dotted{12, 2}, dotted{8, 0}}, []string{"compute capability 8.0", "CUDA 12.4 or later"}},
		{"newer than all, by PTX", nvidia{dotted{13, 0}, dotted{12, 0}}, nil},
		{"newer than all, with a driver that can't compile", nvidia{dotted{12, 2}, dotted{9, 0}}, []string{"compute capability 9.0", "CUDA 12.4 or later", "supports CUDA 12.2"}},
		{"older than all", nvidia{dotted{13, 0}, dotted{3, 5}}, []string{"no code for this GPU (compute capability 3.5), only for: 5.0 and newer, 7.5 and newer, 8.6, 9.0 and newer"}},
		{"an unknown driver", nvidia{dotted{}, dotted{9, 0}}, nil},
		{"an unknown GPU", nvidia{dotted{12, 0}, dotted{}}, nil},
	} {
		err := test.gpu.fits(codes, toolkit)
		if len(test.complaints) == 0 && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if len(test.complaints) > 0 {
			contains(t, err, test.complaints...)
		}
	}
	for version, want := range map[string]dotted{"12.4.127~12.4.1-8.2+b1": toolkit, "13.0.96-1": {13, 0}, "odd": {}} {
		same(t, version, toolkitOf(version).String(), want.String())
	}
}
