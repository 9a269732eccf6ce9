package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// cpuTime is the CPU time of a process and all its threads, including ended ones. The files below /proc have it in steps of
// 10 ms, in which hundreds of requests fit; the process's clock has nanoseconds.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2                 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	clock := ^int32(pid)<<3 | scheduled //nolint:gosec // process ids have 22 bits
	var at syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&at)), 0) //nolint:gosec // there is no other way to this call
	if errno != 0 {
		return 0, fmt.Errorf("the processor time of process %d: %w", pid, errno)
	}
	return time.Duration(at.Nano()), nil
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentMemory is the resident memory of a process, in bytes, including its program.
func residentMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := residentLine.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("process %d has no resident memory", pid)
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10, err
}
