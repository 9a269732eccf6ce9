// Package servers connects to MCP servers: those of mcp.json, and those that a request names by URL.
//
// A [Pool] has one connection to each server. It is made when the server is first used, shared by all who use it, made again after
// it was lost, and closed when nobody has used it for a while. The goroutine that makes a connection owns it and closes it;
// [Pool.Close] waits for all of them.
//
// The protocol is spoken by github.com/mark3labs/mcp-go. What that library leaves open is done around it: everything that a server sends is
// bounded before the library reads it, a request never leaves its server's origin or reaches an address that it may not, and tools and
// results are taken as the server sent them, since the library's types lose what they don't know.
package servers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"
)

// The defaults of [Settings].
const (
	defaultCallTimeout = time.Minute
	defaultIdleTTL     = 10 * time.Minute
)

// The bounds on servers that are named by URL: how many connections are kept that nobody uses, and how many may be used.
const (
	keptPerOwner = 16
	keptRemote   = 128
	usedPerOwner = 128
	usedRemote   = 1024
)

// Options are what a pool is made with.
type Options struct {
	File    string // the path of mcp.json, which needn't exist
	Journal string // the folder in which started programs are recorded for EndLeftovers of package child; empty: they aren't
	Log     *slog.Logger
}

// Settings are what a reload of the configuration may change.
type Settings struct {
	// PrivateHosts are the hosts that [Pool.Remote] connects to even if their addresses aren't public: names, addresses or
	// prefixes, each with a port or without. They are compared with the URL's host.
	PrivateHosts []string
	CallTimeout  time.Duration // the longest duration of a call; 0: a minute
	IdleTTL      time.Duration // how long an unused connection is kept; 0: ten minutes
}

// Remote is a server that a request names.
type Remote struct {
	Label   string // for messages
	URL     string
	Headers map[string]string // are sent to this server alone
}

// Pool has the connections to MCP servers. Its methods may be called from any goroutine.
type Pool struct {
	file    *configFile
	log     *slog.Logger
	connect func(context.Context, target) (conn, error)
	life    context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // the goroutines that own connections

	mu       sync.Mutex
	settings Settings
	private  hosts
	byKey    map[string]*slot
	all      map[*slot]struct{} // also those that are retired but in use
	counts   map[string]Count   // by the label under which a server is counted
	outcomes map[string]outcome // of servers of mcp.json, by label
	closed   bool
}

// NewPool returns a pool without connections. It has to be closed.
func NewPool(o Options) *Pool {
	p := &Pool{
		file: &configFile{path: o.File, log: o.Log}, log: o.Log,
		settings: Settings{CallTimeout: defaultCallTimeout, IdleTTL: defaultIdleTTL},
		byKey:    map[string]*slot{}, all: map[*slot]struct{}{}, counts: map[string]Count{}, outcomes: map[string]outcome{},
	}
	p.life, p.cancel = context.WithCancel(context.Background())
	c := &connector{
		log: o.Log, journal: o.Journal, timeout: p.callTimeout, private: p.privateHosts,
		handshake: handshakeTimeout, startup: startTimeout, patience: pingTimeout,
	}
	p.connect = c.connect
	return p
}

// Close ends all connections. It returns when all programs that the pool started have ended.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for s := range p.all {
		if s.timer != nil {
			s.timer.Stop()
		}
		if s.conn != nil {
			s.conn.lose(errClosed)
		}
	}
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
}

// Set changes the settings. Connections to servers named by URL are made again if other hosts are allowed, once nobody uses them.
func (p *Pool) Set(s Settings) {
	s.CallTimeout, s.IdleTTL = cmp.Or(max(0, s.CallTimeout), defaultCallTimeout), cmp.Or(max(0, s.IdleTTL), defaultIdleTTL)
	var private hosts
	for _, entry := range s.PrivateHosts {
		h, err := parseHost(entry)
		if err != nil {
			p.log.Warn("a private host of MCP servers is ignored", "error", err)
			continue
		}
		private = append(private, h)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := !slices.Equal(p.private, private)
	p.settings, p.private = s, private
	for slot := range p.all {
		switch {
		case changed && slot.target.isRemote:
			p.retire(slot)
		case slot.users == 0 && slot.starting == nil:
			p.rest(slot)
		}
	}
}

func (p *Pool) callTimeout() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings.CallTimeout
}

func (p *Pool) privateHosts() hosts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.private
}

// Plugins returns the entries of mcp.json, as [Read] does.
func (p *Pool) Plugins() ([]Config, error) {
	configs, changed, err := p.file.read()
	if !changed || err != nil {
		return configs, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.outcomes) // they may be of other entries
	for s := range p.all {
		same := func(c Config) bool { return reflect.DeepEqual(c, s.target.Config) }
		if !s.target.isRemote && !slices.ContainsFunc(configs, same) {
			p.retire(s)
		}
	}
	return configs, nil
}

// Plugin connects to a server of mcp.json, by its label or [Config.ID]. Errors: [*UnknownError], [*ConnectionError] and that of ctx.
func (p *Pool) Plugin(ctx context.Context, label string) (*Session, error) {
	configs, err := p.Plugins()
	if err != nil {
		return nil, &ConnectionError{Message: "The file mcp.json can't be read; the server's log says why.", Cause: err}
	}
	i := slices.IndexFunc(configs, func(c Config) bool { return c.Label == label })
	if i < 0 {
		i = slices.IndexFunc(configs, func(c Config) bool { return c.ID() == label })
	}
	if i < 0 {
		unknown := &UnknownError{Label: label}
		for _, c := range configs {
			unknown.Known = append(unknown.Known, c.Label)
		}
		return nil, unknown
	}
	config := configs[i]
	if config.Err != nil {
		return nil, &ConnectionError{Message: notValid(config.Label), Cause: config.Err}
	}
	return p.session(ctx, target{Config: config}, keyOf("plugin", config))
}

func notValid(label string) string {
	return fmt.Sprintf("The entry of the MCP server '%s' in mcp.json is not valid; the server's log says why.", clip(label))
}

// Remote connects to a server that a request names. Nobody but the owner gets the connection, and nobody with other headers. The
// errors are [*ConnectionError] and that of ctx.
func (p *Pool) Remote(ctx context.Context, owner string, r Remote) (*Session, error) {
	t := target{Config: Config{Label: r.Label, URL: r.URL, Headers: r.Headers}, owner: owner, isRemote: true}
	_, err := parseURL(r.URL)
	if err == nil {
		err = checkHeaders(r.Headers)
	}
	if err != nil {
		message := fmt.Sprintf("Unable to connect to remote MCP server '%s': %v.", clip(r.Label), err)
		return nil, &ConnectionError{Message: message, Cause: err}
	}
	return p.session(ctx, t, keyOf("remote", []any{owner, r.URL, r.Headers}))
}

// keyOf returns a key that holds no secret.
func keyOf(kind string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Appendf(nil, "%#v", value) // strings and maps of strings can be written as JSON
	}
	return fmt.Sprintf("%s %x", kind, sha256.Sum256(text))
}

// session gives the server's slot to one more user, and connects.
func (p *Pool) session(ctx context.Context, t target, key string) (*Session, error) {
	p.mu.Lock()
	s := p.byKey[key]
	if s == nil {
		if err := p.admit(t); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		s = &slot{key: key, target: t}
		p.byKey[key] = s
		p.all[s] = struct{}{}
	}
	s.take()
	p.mu.Unlock()
	session := &Session{pool: p, slot: s, target: t}
	if _, err := session.open(ctx); err != nil {
		session.Release()
		return nil, err
	}
	return session, nil
}

// admit refuses a server named by URL if too many are in use. The caller holds the lock.
func (p *Pool) admit(t target) error {
	if !t.isRemote {
		return nil
	}
	var ofOwner, all int
	for s := range p.all {
		if s.target.isRemote && s.users > 0 {
			all++
			if s.target.owner == t.owner {
				ofOwner++
			}
		}
	}
	switch {
	case ofOwner >= usedPerOwner:
		return &ConnectionError{Message: fmt.Sprintf("You use %d remote MCP servers at a time, which is the most. "+
			"Try again when other requests have finished.", usedPerOwner)}
	case all >= usedRemote:
		return &ConnectionError{Message: fmt.Sprintf("%d remote MCP servers are in use, which is the most. Try again later.", usedRemote)}
	}
	return nil
}

// makeRoom closes the connection that was used least recently, if too many are kept. The caller holds the lock.
func (p *Pool) makeRoom(owner string) {
	var ofOwner, all []*slot
	for s := range p.all {
		if s.target.isRemote && s.users == 0 && s.starting == nil {
			all = append(all, s)
			if s.target.owner == owner {
				ofOwner = append(ofOwner, s)
			}
		}
	}
	earlier := func(a, b *slot) int { return a.used.Compare(b.used) }
	if len(ofOwner) > keptPerOwner {
		p.drop(slices.MinFunc(ofOwner, earlier), errUnused)
	} else if len(all) > keptRemote {
		p.drop(slices.MinFunc(all, earlier), errUnused)
	}
}

// configFile is mcp.json, which is read again when it has changed.
type configFile struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	hasRead bool
	changed int64 // when it was read; 0: it wasn't there
	size    int64
	configs []Config
	err     error
}

func (f *configFile) read() (configs []Config, changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var at, size int64
	if info, err := os.Stat(f.path); err == nil {
		at, size = info.ModTime().UnixNano(), info.Size()
	}
	if f.hasRead && f.changed == at && f.size == size {
		return slices.Clone(f.configs), false, f.err
	}
	f.hasRead, f.changed, f.size = true, at, size
	f.configs, f.err = Read(f.path)
	if f.err != nil {
		f.log.Warn("mcp.json can't be used", "error", f.err)
	}
	for _, c := range f.configs {
		if c.Err != nil {
			f.log.Warn("an MCP server can't be used", "error", c.Err)
		}
	}
	return slices.Clone(f.configs), true, f.err
}
