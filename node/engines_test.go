package node

import (
	"errors"
	"slices"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
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
		e := engine{Engine: Engine{Engine: process.Engine{ContextStep: tt.step}}}
		if got := e.contextLength(tt.want, tt.maximum); got != tt.got {
			t.Errorf("%d of at most %d, in steps of %d: %d, want %d", tt.want, tt.maximum, tt.step, got, tt.got)
		}
	}
}

// TestFormatsNow: models are downloaded in the formats of the first engine, and of others while they are there.
func TestFormatsNow(t *testing.T) {
	t.Parallel()
	there := false
	find := func(process.Setup) (string, error) {
		if there {
			return "engine", nil
		}
		return "", errors.New("it isn't installed")
	}
	n := &Engines{inOrder: []*engine{
		{Engine: Engine{Engine: process.Engine{Formats: []catalog.Format{"a"}, Find: find}}},
		{Engine: Engine{Engine: process.Engine{Formats: []catalog.Format{"b", "c"}, Find: find}}},
		{Engine: Engine{Engine: process.Engine{Formats: []catalog.Format{"d"}}}},
	}}
	for _, want := range [][]catalog.Format{{"a", "d"}, {"a", "b", "c", "d"}} {
		if got := n.formatsNow(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		there = true
	}
}
