package fakeengine_test

// How os.ProcessState names what stands for deaths by a signal.
const (
	killed  = "exit status 137"
	aborted = "exit status 134"
)
