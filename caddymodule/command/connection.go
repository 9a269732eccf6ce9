package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

// apiTokenVariable is the environment variable that has the token for other servers.
const apiTokenVariable = "LM_API_TOKEN" //nolint:gosec // the name of a variable

// connection is how a command reaches its server: over the home's socket, or at a URL with a token.
type connection struct{ host, token string }

// newConnection gives a command the flags that choose the server.
func newConnection(cmd *cobra.Command) *connection {
	c := new(connection)
	cmd.SilenceUsage = true
	cmd.Flags().StringVar(&c.host, "host", "", "the server's URL (default: the server that runs on $LMCADDY_HOME)")
	cmd.Flags().StringVar(&c.token, "token", "", "a token for --host (default: $"+apiTokenVariable+")")
	return c
}

func (c *connection) open() (*client.Client, error) {
	if c.host != "" {
		token := c.token
		if token == "" {
			token = os.Getenv(apiTokenVariable)
		}
		return client.OnHost(c.host, token)
	}
	if c.token != "" {
		return nil, errors.New("--token is for --host: the server that runs on $LMCADDY_HOME is asked without one")
	}
	dir, err := home.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return client.OnSocket(dir.Socket()), nil
}

// talk calls do with a client of the server. The context ends if the user interrupts the command.
func (c *connection) talk(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	err := c.use(func(to *client.Client) error { return do(ctx, to) })
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// interruptible returns the command's context, which also ends if the user interrupts the command.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// use calls do with a client of the server. If no server answers, the error says what to do next.
func (c *connection) use(do func(*client.Client) error) error {
	to, err := c.open()
	if err != nil {
		return err
	}
	defer to.Close()
	return c.explain(do(to))
}

func (c *connection) explain(err error) error {
	var down *client.DownError
	if !errors.As(err, &down) {
		return err
	}
	if c.host != "" {
		return fmt.Errorf("%w: check that it runs there, and that --host is right", err)
	}
	return fmt.Errorf("%s (%w): start one with \"lmcaddy serve\" or \"lmcaddy run\", choose another home with LMCADDY_HOME, or name a server with --host", nothingRuns(), down.Reason)
}

// nothingRuns is the beginning of an error: no server answers for the home.
func nothingRuns() string {
	const said = "no lmcaddy seems to be running"
	dir, err := home.FromEnvironment()
	if err != nil {
		return said
	}
	return said + " on the home folder " + string(dir)
}

// writeJSON prints a value as indented JSON.
func writeJSON(out io.Writer, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, encoded, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = text.WriteTo(out)
	return err
}
