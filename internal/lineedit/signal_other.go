//go:build !unix

package lineedit

// watchSignals does nothing: what ends a process here doesn't leave it time.
func (e *Editor) watchSignals() (end func()) { return func() {} }

// suspend does nothing: processes can't be stopped here.
func (e *Editor) suspend() {}

// passInput does nothing: the library reads keys of the console, not bytes.
func passInput() (end func(), err error) { return func() {}, nil }
