package store

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPing_ReadOnlyPostgres: a standby, or a server that refuses writes.
func TestPing_ReadOnlyPostgres(t *testing.T) {
	t.Parallel()
	at := Options{URL: server.schema(t)}
	s := open(t, at)
	root := stored(t, s, turn(nil, "root"))
	must(t, s.Close())
	p, err := openPostgres(t.Context(), at.URL+"&default_transaction_read_only=on", slog.New(slog.DiscardHandler))
	must(t, err)
	s = &Store{connection: connect(p)}
	t.Cleanup(func() { must(t, s.Close()) })
	troubled(t, s, s.Put(t.Context(), turn(nil, "x")), ErrUnavailable, "read")
	_, err = s.Chain(t.Context(), "", root.ID) // reading goes on
	must(t, err)
}

// TestPing_NoConnectionsLeft for a new one, since others have all.
func TestPing_NoConnectionsLeft(t *testing.T) {
	t.Parallel()
	address := server.schema(t)
	s := open(t, Options{URL: address})
	name := strings.TrimSuffix(address[strings.Index(address, "search_path=")+len("search_path="):], "&")
	server.run(t, "CREATE ROLE "+name+" LOGIN SUPERUSER")
	t.Cleanup(func() { server.run(t, "DROP ROLE "+name) })
	limited := open(t, Options{URL: strings.Replace(address, "lmcaddy@", name+"@", 1)})
	server.run(t, "ALTER ROLE "+name+" NOSUPERUSER CONNECTION LIMIT 0")
	must(t, limited.Ping(t.Context())) // by the connection that it has
	limited.db.(*postgres).closeIdle()
	troubled(t, limited, limited.Put(t.Context(), turn(nil, "x")), ErrUnavailable, "too few connections")
	server.run(t, "ALTER ROLE "+name+" SUPERUSER CONNECTION LIMIT -1")
	limited.health.failureFor = 0
	must(t, limited.Ping(t.Context()))
	stored(t, s, turn(nil, "x"))
}

// TestPing_FullPostgres: the disk of the server's machine is full, as its statements say that write.
func TestPing_FullPostgres(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: server.schema(t)})
	s.health.failureFor = 0
	root := stored(t, s, turn(nil, "root"))
	set := func(statement string) {
		t.Helper()
		_, err := s.db.(*postgres).db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	set(`CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
	for _, table := range []string{"turns", "blobs"} {
		set("CREATE TRIGGER fill BEFORE INSERT ON " + table + " EXECUTE FUNCTION fill()")
	}
	troubled(t, s, s.Put(t.Context(), turn(root, "x")), ErrFull, "disk is full")
	_, err := s.Chain(t.Context(), "", root.ID) // reading goes on
	must(t, err)
	set("DROP FUNCTION fill CASCADE")
	must(t, s.Ping(t.Context()))
	stored(t, s, turn(root, "afterwards"))
}

// mute passes bytes between clients and the server, until it is told to pass nothing on, by connections that stay open.
type mute struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    []net.Conn
	isDeaf   bool // new connections aren't served either
	held     chan struct{}
}

func newMute(t *testing.T, to string) *mute {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	m := &mute{listener: listener, to: to, held: make(chan struct{})}
	t.Cleanup(func() {
		must(t, listener.Close())
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, conn := range m.conns {
			_ = conn.Close()
		}
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			m.serve(client)
		}
	}()
	return m
}

func (m *mute) serve(client net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, client)
	if m.isDeaf {
		return
	}
	server, err := net.Dial("unix", m.to)
	if err != nil {
		_ = client.Close()
		return
	}
	m.conns = append(m.conns, server)
	held := m.held
	pass := func(to, from net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			select {
			case <-held:
				return
			default:
			}
			if err != nil {
				_ = to.Close()
				return
			}
			_, _ = to.Write(b[:n])
		}
	}
	go pass(server, client)
	go pass(client, server)
}

// hold keeps what comes by the connections that there are, and, if isDeaf, by new ones.
func (m *mute) hold(isDeaf bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.held)
	m.held, m.isDeaf = make(chan struct{}), isDeaf
}

// TestPostgres_HalfOpenConnections: neither end notices that nothing arrives.
func TestPostgres_HalfOpenConnections(t *testing.T) {
	t.Parallel()
	address := server.schema(t)
	between := newMute(t, filepath.Join(server.dir, ".s.PGSQL.5432"))
	schema := address[strings.Index(address, "search_path="):]
	s := open(t, Options{URL: "postgres://lmcaddy@" + between.listener.Addr().String() + "/postgres?sslmode=disable&application_name=half&" + schema})
	s.db.(*postgres).silence.after, s.db.(*postgres).silence.within = 200*time.Millisecond, 300*time.Millisecond
	root := stored(t, s, turn(nil, "root"))
	must(t, openAll(t.Context(), s.db.(*postgres).db, 4))
	between.hold(false)
	var all sync.WaitGroup
	for range 10 { // on new connections
		all.Go(func() { _, err := s.Chain(t.Context(), "", root.ID); must(t, err) })
		all.Go(func() { stored(t, s, turn(root, "x")) })
	}
	all.Wait()
	between.hold(true)
	begun := time.Now()
	for range 50 {
		all.Go(func() {
			if _, err := s.Chain(t.Context(), "", root.ID); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Chain gives %v", err)
			}
		})
		all.Go(func() {
			if err := s.Put(t.Context(), turn(root, "y")); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Put gives %v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it was refused after %s", took)
	}
	between.hold(false)
	s.health.failureFor = 0
	for begun := time.Now(); s.Ping(t.Context()) != nil; {
		if time.Since(begun) > time.Minute {
			t.Fatal("the server is back, but Ping fails")
		}
	}
	stored(t, s, turn(root, "z"))
	sound(t, s)
}
