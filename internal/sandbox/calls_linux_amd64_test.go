package sandbox

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// has32Bits reports whether the kernel takes system calls of 32-bit programs, which a 64-bit program can make as well. Where it doesn't, the
// program ends at the instruction.
func has32Bits() bool {
	_, err := os.Stat("/proc/sys/abi/vsyscall32")
	return err == nil
}

// call32Bits asks for the process's id as a 32-bit program does.
func call32Bits() error {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(code) }()
	copy(code, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20: getpid
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	})
	start := unsafe.Pointer(&code[0])
	closure := &start
	if got := (*(*func() int32)(unsafe.Pointer(&closure)))(); got < 0 { // the result is in eax, where Go has that of a function
		return unix.Errno(-got)
	}
	return nil
}
