package supervisor_test

import (
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
)

func init() {
	supervisor.LlamaServer = func(locate func() (string, error)) supervisor.Process {
		return &llamaserver.Process{Locate: locate}
	}
}
