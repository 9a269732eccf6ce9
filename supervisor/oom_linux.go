package supervisor

import (
	"bytes"
	"os"
	"strconv"
)

// oomKills returns how many processes the system has killed since it started because memory ran out, also that of a control group.
func oomKills() int64 {
	all, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(all, []byte("\noom_kill "))
	figure, _, _ := bytes.Cut(rest, []byte("\n"))
	count, err := strconv.ParseInt(string(figure), 10, 64)
	if err != nil {
		return 0
	}
	return count
}
