package resident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/unix"
)

// resident returns how much of the program's file is resident, in kB.
func resident(t *testing.T) (kB uint64) {
	t.Helper()
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	maps, err := self.MemoryMaps(false)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range *maps {
		if m.Path == program {
			kB += m.Rss
		}
	}
	return kB
}

// populate makes all of the program resident, as a start does with much of it.
func populate(t *testing.T) {
	t.Helper()
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = smaps.Close() }()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range unchanged(smaps, program) {
		if err := m.advise(unix.MADV_POPULATE_READ); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRelease(t *testing.T) { //nolint:paralleltest // others map pages
	populate(t)
	before := resident(t)
	if err := Release(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before*3/4 { // the test needs some of it
		t.Errorf("%d kB of the program are resident, %d before", after, before)
	}
}

// What the process has changed would be lost.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	const program = "/usr/bin/program"
	for name, tt := range map[string]struct {
		mapping   string
		anonymous string
		want      int
	}{
		"code":               {"00400000-00500000 r-xp 00000000 fe:00 7   " + program, "0", 1 << 20},
		"constants":          {"00400000-00401000 r--p 00000000 fe:00 7   " + program, "0", 1 << 12},
		"relocated":          {"00400000-00500000 r--p 00000000 fe:00 7   " + program, "4", 0},
		"variables":          {"00400000-00500000 rw-p 00000000 fe:00 7   " + program, "0", 0},
		"another file":       {"00400000-00500000 r-xp 00000000 fe:00 7   " + program + "s", "0", 0},
		"a file of the name": {"00400000-00500000 r-xp 00000000 fe:00 7   /x" + program, "0", 0},
		"the heap":           {"c000000000-c000400000 rw-p 00000000 00:00 0", "4", 0},
	} {
		smaps := tt.mapping + "\nSize: 1024 kB\nRss: 4 kB\nAnonymous:  " + tt.anonymous + " kB\nAnonHugePages: 0 kB\nVmFlags: rd ex mr\n"
		got := 0
		for _, m := range unchanged(strings.NewReader(smaps+smaps), filepath.Clean(program)) {
			got += int(m.to - m.from)
		}
		if got != 2*tt.want {
			t.Errorf("%s: %d bytes are released, want %d", name, got, 2*tt.want)
		}
	}
}
