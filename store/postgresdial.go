package store

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// connectTimeout bounds how long a server may take to accept a connection, unless the URL says otherwise.
	connectTimeout = 5 * time.Second
	// unacknowledged is how long the other end may leave data unacknowledged before the system gives a connection up.
	unacknowledged = 6 * time.Second
	// idleTransaction is how long the server keeps the locks of a transaction whose client was lost.
	idleTransaction = "idle_in_transaction_session_timeout"
)

// keepAlive finds a connection dead whose other end has been gone for 16 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 2 * time.Second, Count: 3}

// dialPostgres connects like pgx, but loses a dead connection within seconds.
func dialPostgres(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive, Control: func(network, _ string, c syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		// An error is no reason not to connect: the system may not have the option.
		return c.Control(func(fd uintptr) { _ = boundUnacknowledged(fd, unacknowledged) })
	}}
	return d.DialContext(ctx, network, address)
}

// setUp bounds what a connection's server keeps for it, unless the URL does. It isn't a parameter of the connection's start, which
// connection poolers refuse.
func setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, isChosen := conn.Config().RuntimeParams[idleTransaction]; isChosen {
		return nil
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("SET %s = %d", idleTransaction, postgresSilence.Milliseconds()))
	return err
}
