package echoengine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Format is that of its models: a file whose name ends in ".echo", and whose first line is "echo". The other lines are
// "context: 777", "type: embedding" and the like, all of which may be left out.
const Format catalog.Format = "echo"

// header is the first line of a model's file.
const header = "echo\n"

// memory is what any model takes beside its file, in bytes.
const memory = 1 << 20

// Engine describes the engine. Nothing can be chosen of a load: it has one slot, and the model's own context.
func Engine() process.Engine {
	return process.Engine{
		Name:    "echo",
		Formats: []catalog.Format{Format},
		Files:   []catalog.Files{{Format: Format, Ending: ".echo", Read: read}},
		Find:    find,
		New:     func(s process.Setup) process.Program { return &echo{setup: s} },
		Estimate: func(s *schedule.Spec) (catalog.Memory, error) {
			return catalog.Memory{Weights: s.Model.SizeBytes + memory}, nil
		},
	}
}

func find(s process.Setup) (string, error) {
	if path := s.Path(); path != "" {
		return path, nil
	}
	return "", errors.New("no echo engine is configured")
}

// read reads a model's file.
func read(path string) (catalog.Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return catalog.Model{}, err
	}
	fields, isEcho := strings.CutPrefix(string(text), header)
	if !isEcho {
		return catalog.Model{}, errors.New("it is no model of the echo engine")
	}
	m := catalog.Model{Type: catalog.TypeLLM, Architecture: "echo", MaxContextLength: 1000, ToolUse: true}
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "context":
			m.MaxContextLength, err = strconv.Atoi(value)
		case "experts":
			m.Experts, err = strconv.Atoi(value)
		case "type":
			m.Type = catalog.Type(value)
		default:
			err = fmt.Errorf("%q is nothing that a model has", name)
		}
		if err != nil {
			return catalog.Model{}, err
		}
	}
	return m, nil
}
