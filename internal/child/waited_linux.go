package child

import (
	"fmt"
	"os"
	"time"
)

// waited returns for how long the main thread of a process has been ready to run and had no processor; 0 if the kernel doesn't count that.
func waited(pid int) time.Duration {
	counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	var ran, waited int64 // in nanoseconds
	if _, err := fmt.Sscan(string(counts), &ran, &waited); err != nil {
		return 0
	}
	return time.Duration(waited)
}
