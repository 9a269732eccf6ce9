package node

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// llamaServer is settings of llama-server alone.
func llamaServer(s EngineSettings) map[string]EngineSettings {
	return map[string]EngineSettings{"llama_server": s}
}

func TestEngine_ContextLength(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ step, want, maximum, got int }{
		{256, 1, 8192, 256},
		{256, 256, 8192, 256},
		{256, 257, 8192, 512},
		{256, 1000, 8192, 1024},
		{256, 100000, 8192, 8192},
		{256, 32768, 0, 32768},
		{256, 300, 300, 300},
		{0, 1000, 8192, 1000},
		{0, 100000, 8192, 8192},
	} {
		e := engine{Engine: Engine{Engine: supervisor.Engine{ContextStep: tt.step}}}
		if got := e.contextLength(tt.want, tt.maximum); got != tt.got {
			t.Errorf("%d of at most %d, in steps of %d: %d, want %d", tt.want, tt.maximum, tt.step, got, tt.got)
		}
	}
}
