package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const (
	healthAge   = 2 * time.Second // how old an answer of the disk and the store may be: many may ask for the health, and often
	pingTimeout = 2 * time.Second // bounds how long the store may take to answer
	leastFree   = 64 << 20        // how many bytes of the disk have to be free
)

// Trouble is a reason why the node can't serve some requests, or any.
type Trouble struct {
	Code    string // one of those below
	Message string // for administrators, since it names models
	Fatal   bool   // no request can be served
}

// The codes of troubles.
const (
	TroubleNoEngine     = "no_engine"          // no engine is installed
	TroubleGPU          = "gpu_unusable"       // a GPU isn't used as it should be
	TroubleStore        = "store_unavailable"  // conversations and tokens can't be read, or written
	TroubleDisk         = "disk_full"          // there is no room in the home
	TroubleModels       = "model_failing"      // a model has failed, and hasn't worked since
	TroubleQueue        = "queue_full"         // requests for a model are refused
	TroublePreloading   = "preloading"         // a model that is loaded at the start isn't loaded yet
	TroubleStarting     = "starting"           // the node doesn't serve yet
	TroubleShuttingDown = "shutting_down"      // the node is about to end
	TroubleRemote       = "remote_unreachable" // a remote can't be reached
	TroubleNode         = "node_unreachable"   // another node of the cluster can't be reached
)

type health struct {
	mu    sync.Mutex
	at    time.Time
	found []Trouble
}

// Health returns what is wrong, the worst first. preloads says that a model that is yet to be preloaded counts as fatal.
func (n *Node) Health(preloads bool) []Trouble {
	o := n.supervisor.Overview()
	found := slices.Clone(n.lastingTroubles())
	add := func(code, format string, args ...any) {
		found = append(found, Trouble{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	hasReady := slices.ContainsFunc(o.Instances, func(in supervisor.Info) bool { return in.Status == schedule.Ready && in.Away == "" })
	for i := range found {
		if found[i].Code == TroubleNoEngine {
			found[i].Fatal = !hasReady
		}
	}
	for _, fault := range n.Devices.Faults() {
		add(TroubleGPU, "%s", fault)
	}
	for _, in := range o.Instances {
		if in.Status == schedule.Ready && in.IsOnProcessor() && !in.Spec.NoGPU {
			add(TroubleGPU, "The model %s runs on the processor, which is many times slower, although there is a GPU.", in.ID)
		}
	}
	for _, f := range o.Failing {
		times := "once"
		if f.Count > 1 {
			times = fmt.Sprintf("%d times in a row", f.Count)
		}
		add(TroubleModels, "The model %s has failed %s: %s", f.Key, times, n.HidePaths(f.Why))
	}
	for key, waiting := range o.Waiting {
		if o.Limits.Queue > 0 && waiting >= o.Limits.Queue {
			add(TroubleQueue, "%d requests wait for the model %s, and more are refused.", waiting, key)
		}
	}
	for _, r := range n.Remotes.List() {
		switch why := strings.TrimRight(r.Away, "."); {
		case why == "":
		case r.IsPeer:
			add(TroubleNode, "The node %s of the cluster can't be reached from here: %s.", r.Name, why)
		default:
			add(TroubleRemote, "The remote %s can't be reached: %s.", r.Name, why)
		}
	}
	if preloads {
		n.preloading.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(n.preloading.names)) {
			found = append(found, Trouble{Code: TroublePreloading, Message: "The model " + name + " is being loaded.", Fatal: true})
		}
		n.preloading.mu.Unlock()
	}
	slices.SortStableFunc(found, func(a, b Trouble) int {
		if a.Fatal != b.Fatal {
			if a.Fatal {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Code, b.Code)
	})
	return found
}

// preloading counts the models that are being loaded because the settings say so, by the names there. One that fails isn't waited for.
type preloading struct {
	mu    sync.Mutex
	names map[string]int
}

func (p *preloading) add(name string, loads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[string]int{}
	}
	if p.names[name] += loads; p.names[name] == 0 {
		delete(p.names, name)
	}
}

func (n *Node) lastingTroubles() []Trouble {
	h := &n.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < healthAge {
		return h.found
	}
	h.found = nil
	add := func(code, message string) { h.found = append(h.found, Trouble{Code: code, Message: message}) }
	if why := n.noEngine(); why != nil {
		add(TroubleNoEngine, "No engine can be started: "+n.HidePaths(why.Error()))
	}
	if s := n.Stores.Get(); s != nil {
		ctx, cancel := context.WithTimeout(n.ctx, pingTimeout)
		defer cancel()
		if err := s.Ping(ctx); err != nil && n.ctx.Err() == nil {
			add(TroubleStore, "The store of conversations and tokens can't be used: "+n.HidePaths(err.Error()))
		}
	}
	if usage, err := disk.Usage(string(n.home)); err == nil && usage.Free < leastFree { // what isn't known sends no clients away
		add(TroubleDisk, fmt.Sprintf("The disk of the home is full: %s are free.", humanize.Bytes(usage.Free)))
	}
	h.at = time.Now()
	return h.found
}

// noEngine returns why the first engine, which is the one to install, can't be started, unless another can.
func (n *Node) noEngine() error {
	var why error
	for _, e := range n.Engines.inOrder {
		if e.Find == nil {
			return nil
		}
		_, err := e.Find(e.setup)
		if err == nil {
			return nil
		}
		why = cmp.Or(why, err)
	}
	return cmp.Or(why, errors.New("there is none"))
}

func (n *Node) load() cluster.Load {
	o := n.supervisor.Overview()
	l := cluster.Load{Budget: n.Devices.budget.Load()}
	for i := range o.Instances {
		if in := &o.Instances[i]; in.Spec.Remote == nil {
			l.Loaded++
			l.InUse += in.InUse
			l.Memory += in.OnMachine()
		}
	}
	for _, waiting := range o.Waiting {
		l.Waiting += waiting
	}
	return l
}
