package supervisor

import (
	"runtime"

	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// startOnThread calls start on a dedicated thread, inside the box unless that is nil. The thread lives until end is called. The
// kernel kills a child when the thread that started it ends, and the child inherits the thread's sandbox and signal mask.
//
// Go never clones new threads from a locked thread, and destroys a locked thread when its goroutine ends. So only start runs
// in the sandbox and with blocked signals.
func startOnThread(box *sandbox.Box, start func() error) (end func(), err error) {
	started, ended := make(chan error, 1), make(chan struct{})
	hold := func() {
		err := blockSignals()
		if err == nil && box != nil {
			err = box.Enter()
		}
		if err == nil {
			err = start()
		}
		started <- err
		<-ended
	}
	go func() {
		runtime.LockOSThread()
		if !isMainThread() {
			hold()
			return
		}
		// The main thread can't be destroyed. Lock it until the goroutine below runs on another one.
		defer runtime.UnlockOSThread()
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			hold()
		}()
		<-locked
	}()
	return func() { close(ended) }, <-started
}
