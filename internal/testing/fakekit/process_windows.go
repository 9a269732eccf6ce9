package fakekit

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

const (
	queryLimitedInformation = 0x1000 // PROCESS_QUERY_LIMITED_INFORMATION
	stillActive             = 259    // STILL_ACTIVE
)

var queryFullProcessImageName = syscall.NewLazyDLL("kernel32.dll").NewProc("QueryFullProcessImageNameW")

// Alive reports whether a process exists and has not ended.
func Alive(pid int) bool {
	h, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if err != nil {
		return false
	}
	defer syscall.CloseHandle(h)
	var code uint32
	return syscall.GetExitCodeProcess(h, &code) == nil && code == stillActive
}

// isOurs reports whether a live process runs an executable of one of the names: process ids are used again.
func isOurs(pid int, _ string, names []string) bool {
	if pid == os.Getpid() || !Alive(pid) {
		return false
	}
	h, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if err != nil {
		return false
	}
	defer syscall.CloseHandle(h)
	path := make([]uint16, 32768)
	size := uint32(len(path))
	ok, _, _ := queryFullProcessImageName.Call(uintptr(h), 0, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&size)))
	image := strings.ToLower(syscall.UTF16ToString(path[:size]))
	return ok != 0 && slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(image, name+".exe") })
}
