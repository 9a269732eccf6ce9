package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// stall is how long an engine may make no progress in these tests, and stallSlack the additional time until others are
// answered: for checks of the engine, its end and another start.
const (
	stall      = 10 * time.Second
	stallSlack = time.Minute
)

func startStalling(t *testing.T, more ...string) *harness.Server {
	t.Helper()
	return harness.Start(harness.NewHome(t), harness.Config{
		LM:     append([]string{"stall_timeout " + stall.String()}, more...),
		Engine: []string{"parallel 4"},
	})
}

// wantReplaced checks that another engine answers.
func wantReplaced(t *testing.T, s *harness.Server, before harness.Process) {
	t.Helper()
	begun := time.Now()
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	if took := time.Since(begun); took > stallSlack {
		t.Errorf("it took %s", took)
	}
	if after := s.Engine(); after.PID == before.PID {
		t.Error("the same engine answers")
	}
	if before.Alive() {
		t.Error("the engine that was given up still runs")
	}
}

func TestStuck_AFrozenEngineIsReplacedAndItsRequestsAnswered(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startStalling(t)
	s.Chat(harness.Ask(capital))
	engine := s.Engine()
	engine.Pause(t)
	begun := time.Now()
	first, second := s.Go(harness.ChatPath, harness.Ask(capital)), s.Go(harness.ChatPath, harness.Ask(capital).With("max_tokens", 50))
	for _, reply := range []<-chan harness.Reply{first, second} {
		if a := harness.Wait(t, "an answer", reply).Answer(s); a.Content != paris {
			t.Errorf("%q", a.Content)
		}
	}
	if took := time.Since(begun); took < stall/2 || took > stall+stallSlack {
		t.Errorf("they were answered after %s", took)
	}
	wantReplaced(t, s, engine)
}

func TestStuck_AFrozenEngineAmidStreams(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startStalling(t)
	streams := []*harness.Stream{s.Stream(harness.Long(800)), s.Stream(harness.Long(799))}
	for _, st := range streams {
		st.WaitContent()
	}
	engine := s.Engine()
	engine.Pause(t)
	for _, st := range streams {
		if a := st.Answer(); a.Finish != "length" { // it goes on with another engine
			t.Errorf("it ended with %q", a.Finish)
		}
	}
	wantReplaced(t, s, engine)
}

// TestStuck_WhoLeavesAHangBehind: a hang that a disconnected client leaves behind doesn't affect others for long either.
func TestStuck_WhoLeavesAHangBehind(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startStalling(t)
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	st.Cancel()
	harness.Eventually(t, stall+stallSlack, "the engine is ended", func() bool { return !engine.Alive() })
	wantReplaced(t, s, engine)
}

// TestStuck_AnEngineThatIsAskedToEnd by another program finishes its requests, and is replaced.
func TestStuck_AnEngineThatIsAskedToEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, sig := range stopSignals {
		t.Run(name, func(t *testing.T) {
			s := startStalling(t)
			s.Chat(harness.Ask(capital))
			engine := s.Engine()
			if err := syscall.Kill(engine.PID, sig); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, harness.Patience, "the engine has ended", func() bool { return !engine.Alive() })
			wantReplaced(t, s, engine)
		})
		t.Run(name+" amid a stream", func(t *testing.T) {
			s := startStalling(t)
			st := s.Stream(harness.Long(700))
			st.WaitContent()
			engine := s.Engine()
			engine.Pause(t)
			if err := syscall.Kill(engine.PID, sig); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, harness.Patience, "the instance is draining", func() bool {
				return strings.Contains(s.Command("ps").Output, "draining")
			})
			engine.Resume(t)
			if a := st.Answer(); a.Finish != "length" {
				t.Errorf("the stream's finish_reason is %q", a.Finish)
			}
			harness.Eventually(t, harness.Patience, "the engine has ended", func() bool { return !engine.Alive() })
			wantReplaced(t, s, engine)
		})
	}
}

// slowSite serves HTTP/1.1 and HTTP/2 without TLS.
const slowSite = `{
	grace_period 15s
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	servers {
		protocols h1 h2c
	}
	lm {
		slow_client_timeout 2s
		engine llama_server {
			args --threads 1
			parallel 1
		}
	}
}

http://:%d {
	bind 127.0.0.1 unix/{$LMCADDY_HOME}/run/slow.sock
	encode
	lm_api
}
`

// TestStuck_AClientThatStopsReading loses its slot, though its connection stays open.
func TestStuck_AClientThatStopsReading(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, stop := range map[string]func(net.Conn, string) error{"HTTP/1.1": askHTTP1, "HTTP/2": askHTTP2} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			port := harness.FreePort(t)
			s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(slowSite, port)))
			s.Chat(harness.Ask(capital))
			engine := s.Engine()
			conn, err := net.Dial("unix", s.RunFile("slow.sock")) // the system may keep the whole answer for a TCP connection
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			before := engine.CPU()
			// Each token has a long list of alternatives, so that no buffer holds the answer.
			if err := stop(conn, `{"model":"`+harness.Model+`","stream":true,"ignore_eos":true,"max_tokens":30000,"logprobs":true,"top_logprobs":20,"messages":[{"role":"user","content":"Count to 30"}]}`); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, harness.Patience, "the engine computes", func() bool { return engine.CPU() > before+20*time.Millisecond })
			begun := time.Now()
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("%q", a.Content)
			}
			t.Logf("another was answered after %s", time.Since(begun))
			if !strings.Contains(s.Log(), "a client stopped reading") {
				t.Error("the answer was too short to show anything")
			}
			s.Post(harness.UnloadPath, harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
			s.WaitNoEngine(gone)
		})
	}
}

func askHTTP1(conn net.Conn, body string) error {
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", harness.ChatPath, len(body), body)
	return err
}

// askHTTP2 gives the stream such a large window that the connection blocks first.
func askHTTP2(conn net.Conn, body string) error {
	var header strings.Builder
	encoder := hpack.NewEncoder(&header)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", harness.ChatPath}, {"content-type", "application/json"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	for _, write := range []func() error{
		func() error {
			return framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
		},
		func() error { return framer.WriteWindowUpdate(0, 1<<31-1-65535) },
		func() error {
			return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(header.String()), EndHeaders: true})
		},
		func() error { return framer.WriteData(1, true, []byte(body)) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// TestStuck_ADownloadsEventsDoNotDelayAShutdown, though they last as long as the download.
func TestStuck_ADownloadsEventsDoNotDelayAShutdown(t *testing.T) {
	t.Parallel()
	h := newHub(t, 1<<16)
	config := h.config()
	config.Grace = "60s"
	s := harness.Start(withEngine(t), config)
	id := download(s, tinyRepo)
	response, err := http.Get(s.Base + downloadPath + "/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if status := s.Stop(syscall.SIGTERM, slack); status != 0 {
		t.Errorf("status %d", status)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

// TestStuck_AStreamThatAShutdownCuts says so: its engine isn't to blame.
func TestStuck_AStreamThatAShutdownCuts(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{Grace: "500ms"})
	st := s.Stream(harness.Long(8000))
	st.WaitContent()
	if status := s.Stop(syscall.SIGTERM, 500*time.Millisecond+slack); status != 0 {
		t.Errorf("status %d", status)
	}
	st.WaitEnd()
	all := st.Chunks()
	if code := all[len(all)-1].Get("error.code").Str; code != "shutting_down" {
		t.Errorf("the last event: %s", all[len(all)-1].Raw)
	}
}
