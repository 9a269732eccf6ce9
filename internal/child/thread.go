package child

import (
	"runtime"
)

// StartOnThread calls start on a dedicated thread, which lives until end is called. The kernel kills a child when the thread
// that started it ends, and the child inherits what start has changed about the thread, such as its sandbox or signal mask.
//
// Go never clones new threads from a locked thread, and destroys a locked thread when its goroutine ends. So such a change
// affects nothing but start. end must be called after an error, too.
func StartOnThread(start func() error) (end func(), err error) {
	started, ended := make(chan error, 1), make(chan struct{})
	hold := func() {
		started <- start()
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
