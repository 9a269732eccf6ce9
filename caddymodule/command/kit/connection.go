// Package kit is what the commands have in common: how they reach the server, ask people and print.
package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

const apiTokenVariable = "LM_API_TOKEN" //nolint:gosec // the name of a variable

// Connection is how a command reaches its server: over the home's socket, or at a URL with a token.
type Connection struct {
	cmd         *cobra.Command
	Host, token string
}

// NewConnection gives a command the flags that choose the server.
func NewConnection(cmd *cobra.Command) *Connection {
	c := &Connection{cmd: cmd}
	cmd.Flags().StringVar(&c.Host, "host", "", "the server's URL (default: the server that runs on $LMCADDY_HOME)")
	cmd.Flags().StringVar(&c.token, "token", "", "a token for --host (default: $"+apiTokenVariable+")")
	return c
}

func (c *Connection) open() (*client.Client, error) {
	if c.Host != "" {
		token := c.token
		if token == "" {
			token = os.Getenv(apiTokenVariable)
		}
		return client.OnHost(c.Host, token)
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

// Talk calls do with a client of the server. The context ends if the user interrupts the command.
func (c *Connection) Talk(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	ctx, stop := Interruptible(cmd)
	defer stop()
	err := c.Use(func(to *client.Client) error { return do(ctx, to) })
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// Show asks the server for something, which ask decodes into a value, and prints it: as JSON, or as write shows it to people.
func Show[T any](c *Connection, cmd *cobra.Command, asJSON bool, ask func(context.Context, *client.Client, any) error,
	write func(io.Writer, *T) error,
) error {
	var answer json.RawMessage
	err := c.Talk(cmd, func(ctx context.Context, to *client.Client) error { return ask(ctx, to, &answer) })
	switch {
	case err != nil:
		return err
	case asJSON:
		return WriteJSON(cmd.OutOrStdout(), answer)
	}
	shown := new(T)
	if err := Decode(answer, shown); err != nil {
		return err
	}
	return write(cmd.OutOrStdout(), shown)
}

// Decode reads an answer of the server.
func Decode(answer json.RawMessage, into any) error {
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the server's answer can't be read: %w", err)
	}
	return nil
}

// startPatience is how long a command waits for the server of a home that is in use without one that answers: it starts or ends.
const startPatience = 10 * time.Second

// TalkOrAtHome calls do like talk, or atHome with the home's folder if no server runs on it. A server that starts or ends is waited for.
func (c *Connection) TalkOrAtHome(cmd *cobra.Command, do func(context.Context, *client.Client) error,
	atHome func(context.Context, home.Dir) error,
) error {
	return c.Talk(cmd, func(ctx context.Context, to *client.Client) error {
		for deadline := time.Now().Add(startPatience); ; {
			err := do(ctx, to)
			if _, isDown := errors.AsType[*client.DownError](err); c.Host != "" || !isDown {
				return err
			}
			dir, err := home.FromEnvironment()
			if err != nil {
				return err
			}
			err = atHome(ctx, dir)
			if _, isInUse := errors.AsType[*node.InUse](err); !isInUse || time.Now().After(deadline) {
				return err
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return err
			}
		}
	})
}

// Interruptible returns the command's context, which also ends if the user interrupts the command. A second interrupt ends the process,
// whatever it waits for, such as a pipe from which nobody reads.
func Interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Use calls do with a client of the server. If no server answers, the error says what to do next.
func (c *Connection) Use(do func(*client.Client) error) error {
	to, err := c.open()
	if err != nil {
		return err
	}
	defer to.Close()
	return c.InWords(to, do(to))
}

// IsBlank reports whether a name consists of white space.
func IsBlank(name string) bool { return strings.TrimSpace(name) == "" }

// InWords returns an error of a server in the words of the command line, with what to do next. The error may be about one of the
// names, besides those on the command line.
func (c *Connection) InWords(to *client.Client, err error, names ...string) error {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		advise(c.cmd, to, refused, names)
	}
	return c.explain(err)
}

func (c *Connection) explain(err error) error {
	if _, isSilent := errors.AsType[*client.SilentError](err); isSilent {
		if c.Host != "" {
			return fmt.Errorf("%w: check that --host is right, and that lmcaddy runs there", err)
		}
		return fmt.Errorf("%w: it may hang, \"lmcaddy doctor\" tells more; end its process, and start it again", err)
	}
	var down *client.DownError
	if !errors.As(err, &down) {
		return err
	}
	if down.Proxy != "" {
		return fmt.Errorf("%w: add the host to NO_PROXY, or correct HTTP_PROXY and HTTPS_PROXY", err)
	}
	if c.Host != "" {
		return fmt.Errorf("%w: check that it runs there, and that --host is right", err)
	}
	if len(down.Address) > home.MaxSocketPath {
		return fmt.Errorf("the server of the home folder can't be reached: the path of its socket, %s, "+
			"is longer than the %d bytes that a socket's may have. Choose a shorter LMCADDY_HOME, or name the server with --host",
			down.Address, home.MaxSocketPath)
	}
	why := ""
	if !errors.Is(down.Reason, fs.ErrNotExist) && !errors.Is(down.Reason, syscall.ECONNREFUSED) { // as after an end, or a crash
		why = " (" + down.Reason.Error() + ")"
	}
	return fmt.Errorf("%s%s: start one with \"lmcaddy serve\" or \"lmcaddy run\", choose another home with LMCADDY_HOME, "+
		"or name a server with --host", NothingRuns(), why)
}

// NothingRuns is the beginning of an error: no server answers for the home.
func NothingRuns() string {
	const said = "no lmcaddy seems to be running"
	dir, err := home.FromEnvironment()
	if err != nil {
		return said
	}
	return said + " on the home folder " + string(dir)
}

// WriteJSON prints a value as indented JSON.
func WriteJSON(out io.Writer, value any) error {
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
