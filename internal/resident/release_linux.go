package resident

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Release returns memory to the system that the start of the program has used: garbage, and the pages of code and constants. The system
// maps a page again when the program uses it, usually without reading the disk. The error says why the pages stay, which does no harm.
func Release() error {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for _, m := range unchanged(file, program) {
		if err := m.advise(unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}

type mapping struct{ from, to uintptr }

func (m mapping) advise(advice uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice); errno != 0 {
		return errno
	}
	return nil
}

// unchanged returns the mappings of a program's file that the process can't write, and of which it has no pages of its own, as it has of
// pages that were relocated or have breakpoints.
func unchanged(smaps io.Reader, program string) (all []mapping) {
	var last mapping // to 0: to be left alone
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		var m mapping
		var rights string
		var copies int
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &rights); n == 3 {
			if last = (mapping{}); strings.HasSuffix(line, " "+program) && !strings.Contains(rights, "w") {
				last = m
			}
		} else if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &copies); n == 1 && copies == 0 && last.to > 0 {
			all = append(all, last)
		}
	}
	return all
}
