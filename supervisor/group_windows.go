package supervisor

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is an engine's job object: the engine and its descendants. The system kills them when the last handle closes, which
// happens at the latest when this process ends.
type group struct{ pid int }

var jobs sync.Map // pid to windows.Handle

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
}

func adopt(p *os.Process) (group, error) {
	g := groupOf(p.Pid)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g, fmt.Errorf("creating a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
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
		return g, fmt.Errorf("putting the engine into a job object: %w", assigned)
	}
	jobs.Store(p.Pid, job)
	return g, nil
}

func groupOf(pid int) group { return group{pid} }

// terminate does nothing: a process without a window can't be asked to exit. kill follows.
func (g group) terminate() error { return nil }

func (g group) kill() {
	if job, ok := jobs.LoadAndDelete(g.pid); ok {
		_ = windows.TerminateJobObject(job.(windows.Handle), 1)
		_ = windows.CloseHandle(job.(windows.Handle))
	}
}
