package supervisor_test

import (
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	"github.com/lmcaddy/lmcaddy/supervisor/mlxlm"
)

func init() {
	supervisor.LlamaServer = func(locate func() (string, error)) supervisor.Process {
		return &llamaserver.Process{Locate: locate}
	}
	supervisor.MLXServer = func(setup supervisor.Setup) supervisor.Process { return mlxlm.Engine().New(setup) }
}
