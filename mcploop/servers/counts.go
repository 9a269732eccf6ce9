package servers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// Count is what is known of the calls of a server's tools since the start.
type Count struct {
	Server string // the label of a server of mcp.json; empty for all those together that requests name

	OK, Errors, Failures int64 // results, results that are errors of the tool, and calls at which the server failed
	Seconds              float64
	Connections          int // that are open
}

// Counts returns the counts of all servers that have been used, in the order of their labels.
func (p *Pool) Counts() []Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := make(map[string]*Count, len(p.counts))
	for label, count := range p.counts {
		of[label] = &count
	}
	for s := range p.all {
		if s.alive() == nil {
			continue
		}
		label := s.target.counted()
		if of[label] == nil {
			of[label] = &Count{Server: label}
		}
		of[label].Connections++
	}
	all := make([]Count, 0, len(of))
	for _, count := range of {
		all = append(all, *count)
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Compare(a.Server, b.Server) })
	return all
}

// counted is the label under which a server is counted. What requests call their servers is unbounded.
func (t target) counted() string {
	if t.isRemote {
		return ""
	}
	return t.Label
}

// count counts a call that took some time. One that the client cancelled isn't counted.
func (p *Pool) count(ctx context.Context, t target, result mcploop.Result, err error, took time.Duration) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	label := t.counted()
	c := p.counts[label]
	c.Server = label
	c.Seconds += took.Seconds()
	switch {
	case err != nil:
		c.Failures++
	case result.IsError:
		c.Errors++
	default:
		c.OK++
	}
	p.counts[label] = c
}
