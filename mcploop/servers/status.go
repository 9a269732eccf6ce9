package servers

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// Status is what is known of a server of mcp.json.
type Status struct {
	Label     string
	Transport string // stdio, http or sse
	Command   string // the program, without its arguments, which may have secrets; empty: it has a URL
	URL       string // without what may be a secret: only scheme and host
	Connected bool
	Sessions  int    // in progress
	Tools     int    // when they were last listed; -1: unknown
	Failure   string // why it could not be used the last time; empty: it could, or that hasn't been tried
}

type outcome struct {
	failure string
	tools   int // -1: unknown
}

// Status returns what is known of the servers of mcp.json, sorted by label. It connects to none. The error is that of [Pool.Plugins].
func (p *Pool) Status() ([]Status, error) {
	configs, err := p.Plugins()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Status, 0, len(configs))
	for i := range configs {
		all = append(all, p.statusOf(&configs[i]))
	}
	return all, nil
}

// statusOf is what is known of a server. The caller holds the lock.
func (p *Pool) statusOf(c *Config) Status {
	s := Status{Label: c.Label, Transport: c.transport(), Command: c.Command, Tools: -1}
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		s.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	if c.Err != nil {
		s.Failure = notValid(c.Label)
		return s
	}
	for slot := range p.all {
		if slot.target.isRemote || slot.target.Label != c.Label {
			continue
		}
		s.Sessions += slot.users
		s.Connected = s.Connected || slot.alive() != nil && !slot.retired
	}
	if last, ok := p.outcomes[c.Label]; ok {
		s.Tools, s.Failure = last.tools, last.failure
	}
	if s.Connected {
		s.Failure = ""
	}
	return s
}

func (c *Config) transport() string {
	switch {
	case c.Command != "" || c.URL == "":
		return "stdio"
	case c.Type == typeSSE:
		return typeSSE
	default:
		return typeHTTP
	}
}

// note remembers how a use of a server of mcp.json went, for its status. The caller holds the lock.
func (p *Pool) note(t target, err error) {
	if t.isRemote {
		return
	}
	last, ok := p.outcomes[t.Label]
	if !ok {
		last.tools = -1
	}
	last.failure = ""
	if err != nil {
		last.failure = t.describe(err, false).Message
	}
	p.outcomes[t.Label] = last
}

func (p *Pool) listed(t target, tools int) {
	if t.isRemote {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomes[t.Label] = outcome{tools: tools}
}

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
