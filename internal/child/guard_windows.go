package child

import (
	"os"
	"syscall"
)

const guardShell = ""

// guard is always nil: the system itself ends a job object with this process.
type guard struct{}

func newGuard(string, Mark) (*guard, error) { return nil, nil }

func (*guard) attributes() *syscall.SysProcAttr { return OwnGroup() }

func (*guard) adopt(p *os.Process) (Group, error) { return Adopt(p) }

func (*guard) end() {}
