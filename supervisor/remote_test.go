package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// farServer is a Server for tests.
type farServer struct {
	url       string
	transport http.RoundTripper
	silence   time.Duration
	dead      error
	isDead    func() // told of that by Alive; nil: nobody is
}

func (f *farServer) Post(ctx context.Context, path string, body Payload) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+path, body.Reader())
	if err != nil {
		return nil, err
	}
	req.ContentLength = body.Size()
	return f.transport.RoundTrip(req)
}

func (f *farServer) Alive(context.Context) error {
	if f.isDead != nil {
		f.isDead()
	}
	return f.dead
}

func (f *farServer) Silence() time.Duration { return f.silence }

// fewBytes is what a connection holds that wasn't read, about. A system may hold 32 MiB at each end.
const fewBytes = 64 << 10

// littleBuffered is a listener whose connections hold few bytes that the server hasn't read.
type littleBuffered struct{ net.Listener }

func (l littleBuffered) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetReadBuffer(fewBytes)
	}
	return conn, err
}

// dialLittleBuffered returns a connection that holds few bytes that aren't sent.
func dialLittleBuffered(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(fewBytes)
	}
	return conn, err
}

// remoteLease returns a lease of a model on a remote that answers by a handler.
func remoteLease(t *testing.T, far *farServer, handler http.HandlerFunc) (*Supervisor, *Lease) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Listener = littleBuffered{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{DialContext: dialLittleBuffered}
	t.Cleanup(transport.CloseIdleConnections)
	far.url, far.transport = server.URL, transport
	s := New(nil, Options{}, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	spec := &schedule.Spec{Model: catalog.Model{Key: "a"}, Parallel: 2, Remote: &schedule.Remote{Server: far, Name: "r", Kind: "vllm", Version: "1", Address: server.URL}}
	s.Handle(schedule.Placed{Remote: "r", Specs: []*schedule.Spec{spec}, Away: ""})
	lease, err := s.Acquire(t.Context(), schedule.Demand{Key: "a", Spec: spec}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lease.Release)
	return s, lease
}

func TestRemote_IsSentWhatItsLeaseIsGiven(t *testing.T) {
	t.Parallel()
	_, lease := remoteLease(t, &farServer{silence: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.URL.Path+" "), body...))
	})
	if in := lease.Instance; in.ID != "r/a" || in.Build.Engine != "vllm" || in.PID != 0 || in.Memory != 0 {
		t.Errorf("the instance is %+v", in)
	}
	resp, err := lease.PostPieces(t.Context(), "/v1/x", Payload{Pieces: [][]byte{[]byte(`{"a":`), []byte(`1}`)}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(said, []byte(`/v1/x {"a":1}`)) {
		t.Errorf("the remote got %q, %v", said, err)
	}
}

func TestRemote_AnAnswerThatStallsIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]bool{"before its header": false, "after its header": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, lease := remoteLease(t, &farServer{silence: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body) // before that, the server doesn't notice that the client disconnects
				if begins {
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			resp, err := lease.Post(t.Context(), "/", []byte(`{}`))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Fatal("the answer never came, but there is no error")
			}
			if loss := lease.Lost(t.Context(), err); loss.Kind != process.Silent {
				t.Errorf("the loss is %s, want %s", loss.Kind, process.Silent)
			}
		})
	}
}

func TestRemote_OneThatIsDeadGetsNoMoreRequests(t *testing.T) {
	t.Parallel()
	far := &farServer{dead: errors.New("connection refused")}
	s, lease := remoteLease(t, far, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	spec := lease.Instance.Spec
	far.isDead = func() { s.Handle(schedule.Placed{Remote: "r", Specs: []*schedule.Spec{spec}, Away: far.dead.Error()}) }
	_, err := lease.Post(t.Context(), "/", []byte(`{}`))
	if err == nil {
		t.Fatal("the connection was closed, but there is no error")
	}
	if loss := lease.Lost(t.Context(), err); loss.Kind != process.Unreachable {
		t.Errorf("the loss is %s, want %s", loss.Kind, process.Unreachable)
	}
	var refused schedule.Error
	if _, err := s.Acquire(t.Context(), schedule.Demand{Key: "a", Spec: spec}, nil); !errors.As(err, &refused) || refused.Kind != schedule.RemoteAway {
		t.Errorf("the next request gets %v, want that the remote is away", err)
	}
	s.Handle(schedule.Placed{Remote: "r", Specs: []*schedule.Spec{spec}, Away: ""})
	again, err := s.Acquire(t.Context(), schedule.Demand{Key: "a", Spec: spec}, nil)
	if err != nil {
		t.Fatalf("after it is back: %v", err)
	}
	again.Release()
}

func TestRemote_OneThatIsAliveKeepsItsRequests(t *testing.T) {
	t.Parallel()
	s, lease := remoteLease(t, &farServer{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := lease.Post(t.Context(), "/", []byte(`{}`))
	if loss := lease.Lost(t.Context(), err); loss.Kind != process.Unharmed {
		t.Errorf("the loss is %s, want %s", loss.Kind, process.Unharmed)
	}
	if in := s.Instances(); len(in) != 1 || in[0].Away != "" {
		t.Errorf("the instances are %+v", in)
	}
}

func TestRemote_TheEndOfTheServerEndsItsRequests(t *testing.T) {
	t.Parallel()
	s, lease := remoteLease(t, &farServer{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	resp, err := lease.Post(t.Context(), "/", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.Close()
	if _, err = io.ReadAll(resp.Body); err == nil {
		t.Fatal("the answer goes on after the end")
	}
	if loss := lease.Lost(t.Context(), err); loss.Kind != process.ShutDown {
		t.Errorf("the loss is %s, want %s", loss.Kind, process.ShutDown)
	}
}

func TestRemote_RemovingItKeepsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	s, lease := remoteLease(t, &farServer{}, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-goOn
		_, _ = w.Write([]byte("done"))
	})
	resp, err := lease.Post(t.Context(), "/", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.Handle(schedule.Placed{Remote: "r"})
	if left := s.Instances(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	close(goOn)
	if said, err := io.ReadAll(resp.Body); string(said) != "done" || err != nil {
		t.Errorf("the answer is %q, %v", said, err)
	}
}

// TestRemote_ReadsALargeBodySlowly: a remote that takes its time to read a request isn't silent.
func TestRemote_ReadsALargeBodySlowly(t *testing.T) {
	t.Parallel()
	const size, piece = 64 << 20, 1 << 20
	_, lease := remoteLease(t, &farServer{silence: 1200 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for buf := make([]byte, piece); ; {
			read, err := io.ReadFull(r.Body, buf)
			if n += read; err != nil {
				break
			}
			time.Sleep(40 * time.Millisecond)
		}
		_, _ = fmt.Fprint(w, n)
	})
	resp, err := lease.PostPieces(t.Context(), "/v1/x", Payload{Pieces: [][]byte{make([]byte, size)}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || string(said) != strconv.Itoa(size) {
		t.Errorf("the remote got %s bytes, %v", said, err)
	}
}
