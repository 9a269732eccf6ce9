package node

import (
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// longestToken is what [catalog.LongestToken] tells of a model's file.
type longestToken struct {
	changed time.Time
	bytes   int
}

// LeastTokens is how many tokens a prompt with so many bytes of text has at least, and the longest context that it can get.
// Both are 0 where that isn't known. The error is that of [Node.Acquire] for what can't be loaded.
func (n *Node) LeastTokens(ctx context.Context, t Target, d Demand, bytes int) (least, limit int, _ error) {
	longest := n.longestToken(t.Model)
	if longest == 0 {
		return 0, 0, nil
	}
	limit, known := n.longestContext(t)
	if !known {
		return 0, 0, nil
	}
	if t.Instance == "" {
		spec, err := n.firstUse(ctx, &t.Model, d)
		if err != nil {
			return 0, 0, err
		}
		if n.engines[spec.Engine].fixed(spec.Args).Context {
			return 0, 0, nil
		}
		limit = max(limit, spec.ContextLength)
	}
	return (bytes + longest - 1) / longest, limit, nil
}

// longestContext is the longest context of the instances that a target may be answered by, in tokens. It isn't known where
// one of them was given another length by an argument.
func (n *Node) longestContext(t Target) (longest int, known bool) {
	for _, in := range n.supervisor.Instances() {
		if in.Spec.Model.Key != t.Model.Key || t.Instance != "" && in.ID != t.Instance {
			continue
		}
		if n.engines[in.Spec.Engine].fixed(in.Spec.Args).Context {
			return 0, false
		}
		longest = max(longest, in.Spec.ContextLength)
	}
	return longest, true
}

// longestToken remembers what a model's file tells, since it takes some milliseconds to read.
func (n *Node) longestToken(m catalog.Model) int {
	if v, ok := n.longest.Load(m.Key); ok {
		if known := v.(longestToken); known.changed.Equal(m.Changed) {
			return known.bytes
		}
	}
	bytes, err := catalog.LongestToken(m)
	if err != nil {
		return 0 // the load will tell
	}
	n.longest.Store(m.Key, longestToken{m.Changed, bytes})
	return bytes
}
