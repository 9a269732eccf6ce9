package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// client is one client on a connection of its own. It does as little as possible, since its CPU time is taken from what is
// measured.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	body bytes.Buffer
	want answerShape
}

// answerShape is what all answers to one request have in common, learnt from the first.
type answerShape struct {
	size   int
	suffix []byte
}

// patience is the deadline for an answer on a busy machine.
const patience = time.Minute

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// learn sends a request like do, and checks the answer: it must have the expected number of events, or be one JSON object.
func (c *client) learn(request []byte, gathered bool, events int) error {
	if err := c.exchange(request); err != nil {
		return err
	}
	body := c.body.Bytes()
	c.want = answerShape{len(body), lastEvent}
	if gathered {
		c.want.suffix, events = []byte("}"), 0
	}
	// The chunk with the usage isn't passed on to a client that hasn't asked for it.
	if n := bytes.Count(body, []byte("data: ")); n != events && n != events-1 || !bytes.HasSuffix(body, c.want.suffix) {
		return fmt.Errorf("an answer of %d events was expected: %.500s", events, body)
	}
	return nil
}

// do sends a request, and reads the answer to its end. An answer that differs in length from the first is an error: a stream
// may have been cut off.
func (c *client) do(request []byte) error {
	if err := c.exchange(request); err != nil {
		return err
	}
	if body := c.body.Bytes(); len(body) != c.want.size || !bytes.HasSuffix(body, c.want.suffix) {
		return fmt.Errorf("an answer has %d bytes, the first had %d; its end: %q", len(body), c.want.size, body[max(0, len(body)-200):])
	}
	return nil
}

func (c *client) exchange(request []byte) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.body.Reset()
	if _, err := c.body.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, c.body.Bytes())
	}
	return nil
}
