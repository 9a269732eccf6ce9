package supervisor

import (
	"runtime"

	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// startOnThread calls start on a thread of its own, inside the box unless that is nil, and keeps the thread until the function
// that it returns is called. The kernel ends a child when the thread that started it ends, and confines a child as it does that
// thread; a child also inherits the signals that the thread blocks.
//
// Go makes new threads from a thread that isn't locked, and destroys a locked one whose goroutine ends. So nothing but start is
// ever confined, or kept from signals.
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
		// The main thread can't be destroyed. It is held until another one is found.
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
