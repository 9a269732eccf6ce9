package process_test

import (
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

func init() {
	process.LlamaServer = func(locate func() (string, error)) process.Program { return &llamaserver.Process{Locate: locate} }
}
