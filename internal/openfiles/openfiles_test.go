package openfiles

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestAreExhausted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a file":                 {&os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE}, true},
		"a pipe":                 {os.NewSyscallError("pipe2", syscall.EMFILE), true},
		"the system's limit":     {os.NewSyscallError("pipe2", syscall.ENFILE), true},
		"a connection":           {&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		"wrapped":                {fmt.Errorf("loading: %w", &os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE}), true},
		"a file that is missing": {&os.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT}, false},
		"no error":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := AreExhausted(tt.err); got != tt.want {
				t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
			}
		})
	}
}
