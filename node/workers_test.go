package node

import (
	"strings"
	"testing"
)

func TestSettings_Workers(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]ModelSettings{
		"":                          {RPC: []string{"10.0.0.3:5", "box:5"}, Args: []string{"-ngl", "20"}},
		"model a/b: rpc: \"box\"":   {RPC: []string{"box"}},
		"must be written as":        {RPC: []string{"BOX:5"}},
		"is named twice":            {RPC: []string{"box:5", "box:5"}},
		"the arguments have --rpc":  {RPC: []string{"box:5"}, Args: []string{"--rpc", "box:6"}},
		"the arguments have --rpc,": {RPC: []string{"box:5"}, Args: []string{"--rpc=box:6"}},
	} {
		err := Settings{Models: map[string]ModelSettings{"a/b": m}}.Validate()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", m, err, want)
		}
	}
}
