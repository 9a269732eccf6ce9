//go:build unix

package vram

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNVIDIA(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		want   []GPU
	}{
		"two":              {`echo "NVIDIA H200, 143771, 14336"; echo "NVIDIA GeForce RTX 3090, 24576, 24000"`, []GPU{{"NVIDIA H200", 143771 << 20, 14336 << 20}, {"NVIDIA GeForce RTX 3090", 24576 << 20, 24000 << 20}}},
		"one that says no": {`echo "NVIDIA GB10, [N/A], [N/A]"; echo "NVIDIA H200, 10, 5"`, []GPU{{"NVIDIA H200", 10 << 20, 5 << 20}}},
		"no driver":        {`echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`, nil},
		"nonsense":         {`echo 'a "b'`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "nvidia-smi")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n[ \"$1\" = --query-gpu=name,memory.total,memory.free ] || exit 1\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, nvidia(t.Context(), program)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMD(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for path, text := range map[string]string{
		"card0/device/mem_info_vram_total":           "17163091968\n",
		"card0/device/mem_info_vram_used":            "163091968\n",
		"card1/device/mem_info_vram_total":           "8000\n",
		"card2/device/mem_info_vram_used":            "8000\n",
		"card0-DP-1/device/mem_info_vram_total/none": "",
	} {
		file := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]GPU{{Total: 17163091968, Free: 17000000000}}, amd(folder)); diff != "" {
		t.Error(diff)
	}
}
