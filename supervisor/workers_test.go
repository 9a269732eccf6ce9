package supervisor

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/closedport"
)

func on(spec *Spec, workers ...string) *Spec {
	return with(spec, func(s *Spec) { s.RPC = workers })
}

func TestStep_AWorkerServesOneInstance(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	first := p.idle(on(specOf("a", 1), "x:1", "y:1"))
	p.idle(specOf("b", 1)) // without workers, whose room isn't needed
	p.on(asks(1, on(specOf("c", 1), "y:1", "z:1")), Stop{first, ForRoom})
	p.on(stopped(first), Spawn{"c", 3})
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
	p.names("b", "c")
	p.on(asks(2, on(specOf("d", 1), "x:1")), Spawn{"d", 4}) // beside it, on another worker
}

// A busy instance keeps its worker until the lead of the other model's request is over; then it gets no newer requests.
func TestStep_AWorkerThatIsInUse(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a, b := on(specOf("a", 1), "x:1"), on(specOf("b", 1), "x:1")
	busy := p.busy(a)
	p.on(asks(1, b))
	p.on(back(busy), Stop{busy, ForRoom})
	p.on(stopped(busy), Spawn{"b", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(asks(2, a))
	p.pass(minLead)
	p.on(asks(3, b))
	p.waits(2, 3)
	p.on(Returned{Gen: 2, Slots: 1, Answered: true, Key: "b", Waiter: 1}, Stop{2, ForRoom})
}

// A model with workers is tried again every 15 seconds at least.
func TestStep_AWorkerThatIsMissedIsSoonTriedAgain(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	spec := on(specOf("a", 1), "x:1")
	for range 8 {
		(&stepper{st: &p.st, now: p.now}).failed(spec, "it is away")
	}
	if wait := p.st.Failures["a"].Until.Sub(p.now); wait != maxWorkerDelay {
		t.Errorf("it is tried again after %s", wait)
	}
}

// The second instance of a model takes the place of the first: they have the same worker.
func TestStep_ASecondInstanceOnTheSameWorker(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a := on(specOf("a", 1), "x:1")
	first := p.idle(a)
	p.on(loads(1, a), Stop{first, ForRoom})
	p.on(stopped(first), Spawn{"a", 2})
}

func TestStep_AWorkerOfAPinnedModel(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(pinned(on(specOf("a", 1), "x:1")))
	p.on(asks(1, on(specOf("b", 1), "y:1", "x:1")), Refuse{1, Error{
		Kind:    NeverFits,
		Message: "The model b can't be loaded: it needs the worker x:1, which computes for a pinned model, and serves one at a time. Unload that model, or give the two different workers.",
	}})
}

// New workers need another process, which can't start before the old one has ended: it may have the same ones.
func TestStep_OtherWorkers(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	gen := p.idle(on(specOf("a", 1), "x:1"))
	p.on(Configured{Specs: map[uint64]*Spec{gen: on(specOf("a", 1), "x:1", "y:1")}}, Stop{gen, ForSettings})
	p.on(stopped(gen), Spawn{"a", 2})
}

func TestOutlook_OfAWorker(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(on(specOf("a", 1), "x:1"))
	o := p.st.outlook(on(specOf("b", 1), "x:1"), p.now)
	if diff := cmp.Diff([]string{"a"}, o.Evicts); diff != "" || o.Loads == nil {
		t.Errorf("%+v", o)
	}
}

// The memory of workers isn't this machine's.
func TestStep_MemoryOfWorkers(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 1 << 30})
	spec := with(on(sized("a", 400<<20), "x:1"), func(s *Spec) { s.Elsewhere = 3 << 30 })
	p.on(asks(1, spec), Spawn{"a", 1})
	for _, sig := range []Signal{
		{Kind: SignalBuffer, Text: "CPU_Mapped", Bytes: 100 << 20},
		{Kind: SignalBuffer, Text: "RPC0", Worker: "10.0.0.3:1", Bytes: 2 << 30},
		{Kind: SignalBuffer, Text: "RPC0", Worker: "10.0.0.3:1", Bytes: 1 << 30},
	} {
		p.on(Signalled{1, sig})
	}
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	in := p.st.Instances[0]
	if want := int64(100<<20 + RuntimeMemory); in.Claim != want {
		t.Errorf("it is counted with %d bytes, want %d", in.Claim, want)
	}
	info := Info{Spec: in.Spec, Memory: in.Claim, Build: Build{Devices: []Device{}}, applied: in.Applied, workers: []string{"10.0.0.3:1"}}
	if diff := cmp.Diff([]DeviceMemory{{"x:1", 3 << 30}}, info.Workers()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]DeviceMemory{{CPU, in.Claim}}, info.Devices()); diff != "" {
		t.Error(diff)
	}
}

// worker takes connections, one at a time, and lets a test do with them what it likes.
func worker(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// An engine whose worker has gone is ended, although it does nothing and would find out only with the next request.
func TestSupervisor_AWorkerThatEndsWhileItsEngineIsIdle(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	address := worker(t, func(conn net.Conn) {
		head := make([]byte, 1)
		if _, err := io.ReadFull(conn, head); err == nil { // the check before the launch; else the engine was stopped
			return
		}
	})
	watched := worker(t, func(conn net.Conn) {
		head := make(chan struct{})
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			close(head)
		}()
		select {
		case <-head: // the check
		case <-ends: // the connection that is kept while the engine runs
		}
	})
	s, _ := start(t, nil)
	spec := on(fakeSpec("m", 1), address, watched)
	first, err := s.Load(t.Context(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	close(ends)
	eventually(t, "it is gone", func() bool { return len(s.Instances()) == 0 })
	_, err = s.Acquire(t.Context(), Demand{Key: "m", Slots: 1, Spec: spec, MayLoad: true})
	if err != nil {
		t.Fatalf("it is not loaded again after %s: %v", first.ID, err)
	}
}

func TestSupervisor_AWorkerThatIsAbsent(t *testing.T) {
	t.Parallel()
	address := closedport.Address(t)
	s, fake := start(t, nil)
	_, err := s.Load(t.Context(), on(fakeSpec("m", 1), address), nil)
	var refused Error
	if !errors.As(err, &refused) || refused.Kind != LoadFailed || !strings.Contains(refused.Message, "no worker listens at "+address) {
		t.Errorf("error %v", err)
	}
	if n := len(starts(fake)); n > 0 {
		t.Errorf("the engine was launched %d times", n)
	}
}
