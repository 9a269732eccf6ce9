package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// keepAlive is a client that sends its requests on one connection while the server keeps it open. Unlike net/http's client,
// it never retries a request.
type keepAlive struct {
	address string
	request string // the bytes on the wire

	conn   net.Conn
	reader *bufio.Reader
	used   int // requests that were answered on the connection
}

// roundTrip sends the request once and reads the answer.
func (k *keepAlive) roundTrip() error {
	if k.conn == nil {
		conn, err := net.Dial("tcp", k.address)
		if err != nil {
			return err
		}
		k.conn, k.reader, k.used = conn, bufio.NewReader(conn), 0
	}
	resp, err := k.answer()
	if err != nil {
		err = fmt.Errorf("after %d answers on the connection: %w", k.used, err)
	} else if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	k.used++
	if err != nil || resp.Close {
		_ = k.conn.Close()
		k.conn = nil
	}
	return err
}

func (k *keepAlive) answer() (*http.Response, error) {
	if _, err := io.WriteString(k.conn, k.request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(k.reader, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

// TestReload_KeepsConnectionsThatAreInUse until an answer announces the close: a client can't tell whether a request that was
// reset was processed. Some may fail, since a busy machine may delay a client until its connection counts as idle.
func TestReload_KeepsConnectionsThatAreInUse(t *testing.T) {
	t.Parallel()
	const reloads = 10
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	s.Chat(harness.Ask(capital))

	address := harness.Address(config.Port)
	body := `{"model":"` + harness.Model + `","max_tokens":2,"messages":[{"role":"user","content":"Hi"}]}`
	get := "GET /v1/models HTTP/1.1\r\nHost: " + address + "\r\n\r\n"
	post := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", harness.ChatPath, address, len(body), body)

	var clients sync.WaitGroup
	var answered atomic.Int64
	var mu sync.Mutex
	var failures []string
	done := make(chan struct{})
	for _, request := range []string{get, get, get, get, post, post, post, post} {
		k := &keepAlive{address: address, request: request}
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				err := k.roundTrip()
				if err == nil {
					answered.Add(1)
					continue
				}
				method, _, _ := strings.Cut(request, " ")
				mu.Lock()
				failures = append(failures, method+" "+err.Error())
				mu.Unlock()
			}
		})
	}
	for i := range reloads {
		config.LM = []string{"idle_ttl " + fmt.Sprint(10+i) + "m"}
		if r := s.Reload(config.String()); r.Status != 0 {
			t.Fatalf("reload: %s", r.Output)
		}
	}
	close(done)
	clients.Wait()
	t.Logf("%d requests were answered, %d failed, at %d reloads", answered.Load(), len(failures), reloads)
	if len(failures) > reloads { // without a countermeasure, half of the clients fail at each reload
		t.Errorf("%d requests failed:\n%s", len(failures), strings.Join(failures, "\n"))
	}
}
