package models

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

func writeEstimate(f *facts, e *resource.LoadEstimate) {
	f.add("Context", "%d tokens for each request", e.Config.ContextLength)
	f.add("Parallel", "%s at a time", kit.Count(e.Slots, "request"))
	f.add("Memory needed", "%s (%s)", kit.Size(e.Memory.Total), memoryParts(&e.Memory))
	free := "no limit is set"
	if e.Budget != nil && e.Free != nil {
		free = fmt.Sprintf("%s of %s for all models", kit.Size(*e.Free), kit.Size(*e.Budget))
	}
	f.add("Memory free", "%s", free)
	for _, d := range e.Devices[min(1, len(e.Devices)):] {
		f.add("Free on "+d.Name, "%s of %s for all models", kit.Size(max(0, d.Budget-d.Taken)), kit.Size(d.Budget))
	}
	if e.Placement != "" {
		f.add("Placement", "%s", e.Placement)
	}
	f.add("Confidence", "%s", map[string]string{
		"measured": "measured when it was last loaded", "high": "high", "low": "low: its file lacks figures",
	}[e.Memory.Confidence])
	f.add("Estimate", "%s", outlookInWords(e))
}

// memoryParts lists the parts of an estimate that take something.
func memoryParts(m *resource.MemoryEstimate) string {
	var parts []string
	for _, part := range []struct {
		name string
		size int64
	}{
		{"weights", m.Weights},
		{"context", m.KVCache},
		{"computation", m.Compute},
		{"images", m.Projector},
		{"draft model", m.Draft},
		{"prompt cache", m.PromptCache},
		{"engine", m.Engine},
	} {
		if part.size > 0 {
			parts = append(parts, part.name+" "+kit.Size(part.size))
		}
	}
	return strings.Join(parts, ", ")
}

func outlookInWords(e *resource.LoadEstimate) string {
	if !e.Fits {
		return "it can't be loaded"
	}
	text := "it can be loaded at once"
	switch s := e.Smaller; {
	case s == nil:
	case s.ContextLength > 0 && s.ContextLength < e.Config.ContextLength:
		text = fmt.Sprintf("it can be loaded with a context of %d tokens, for %s at a time, in %s", s.ContextLength,
			kit.Count(s.Slots, "request"), kit.Size(s.Memory))
	case s.Slots == e.Slots:
		text = "it can be loaded with a smaller prompt cache, in " + kit.Size(s.Memory)
	default:
		text = fmt.Sprintf("it can be loaded for %s at a time, in %s", kit.Count(e.Smaller.Slots, "request"), kit.Size(e.Smaller.Memory))
	}
	var first []string
	if n := len(e.Evicts) + e.Others; n > 0 {
		names := strings.Join(e.Evicts, ", ")
		if e.Others > 0 {
			names = strings.TrimPrefix(names+", and "+kit.Count(e.Others, "model")+" of others", ", and ")
		}
		first = append(first, names+" would be unloaded for it")
	}
	if len(e.Shrinks) > 0 {
		first = append(first, strings.Join(e.Shrinks, ", ")+" would be made smaller for it")
	}
	if e.Waits {
		first = append(first, "it would wait until requests have ended")
	}
	if len(first) > 0 {
		text = strings.TrimSuffix(text, " at once") + "; " + strings.Join(first, "; ")
	}
	return text
}

// notFitting is the error of an estimate for a load that is impossible; nil: it is possible.
func notFitting(e *resource.LoadEstimate) error {
	if e.Fits {
		return nil
	}
	return errors.New(strings.TrimRight(e.Reason, ". "))
}
