package child

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	gopsutil "github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/windows"
)

// Group is the job object of a child and its descendants. The system kills them when the last handle closes, which happens at
// the latest when this process ends.
type Group struct{ pid int }

var jobs sync.Map // pid to windows.Handle

// OwnGroup keeps the terminal's Ctrl-C from a child. Adopt makes its job object.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
}

// Adopt puts a process that was started with OwnGroup, and what it will start, into a new job object. After an error, the
// process runs without.
func Adopt(p *os.Process) (Group, error) {
	g := groupOf(p.Pid)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g, fmt.Errorf("creating a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info))); err != nil {
		_ = windows.CloseHandle(job)
		return g, fmt.Errorf("limiting a job object: %w", err)
	}
	var assigned error
	if err := p.WithHandle(func(handle uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(handle))
	}); err != nil {
		assigned = err
	}
	if assigned != nil {
		_ = windows.CloseHandle(job)
		return g, fmt.Errorf("putting the process into a job object: %w", assigned)
	}
	jobs.Store(p.Pid, job)
	return g, nil
}

// lookUp returns what can be asked about a process, or an error if it has ended.
func lookUp(pid int32) (*gopsutil.Process, error) { return gopsutil.NewProcess(pid) }

func groupOf(pid int) Group { return Group{pid} }

// Terminate does nothing: a process without a window can't be asked to exit. Kill follows.
func (g Group) Terminate() error { return nil }

// Kill kills what is left of the group.
func (g Group) Kill() {
	if job, ok := jobs.LoadAndDelete(g.pid); ok {
		_ = windows.TerminateJobObject(job.(windows.Handle), 1)
		_ = windows.CloseHandle(job.(windows.Handle))
	}
}

// HasEnded reports whether a process has exited, even if it hasn't been waited for.
func HasEnded(p *os.Process) bool {
	ended := false
	err := p.WithHandle(func(handle uintptr) {
		state, _ := windows.WaitForSingleObject(windows.Handle(handle), 0)
		ended = state == windows.WAIT_OBJECT_0
	})
	return ended || err != nil
}

// members returns only the child itself: a job object isn't asked what is in it.
func (g Group) members(_ context.Context, pid int) []int32 {
	return []int32{int32(pid)} //nolint:gosec // process ids fit
}

const guardShell = ""

// Guard is always nil: the system itself ends a job object with this process.
type Guard struct{}

// NewGuard returns nil.
func NewGuard(Mark) (*Guard, error) { return nil, nil }

func newGuard(string, Mark) (*Guard, error) { return nil, nil }

// Attributes are those of a child that is to be in a job object.
func (*Guard) Attributes() *syscall.SysProcAttr { return OwnGroup() }

// Adopt returns the group of a child that was started with Attributes.
func (*Guard) Adopt(p *os.Process) (Group, error) { return Adopt(p) }

// End does nothing.
func (*Guard) End() {}
