package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// chat is one run of `lmcaddy chat`.
type chat struct {
	cmd     *cobra.Command
	request client.ChatRequest
	stats   bool
}

// defineChat defines `lmcaddy chat`.
func defineChat(cmd *cobra.Command) {
	cmd.Long = `Asks a model, and prints its answer as it arrives. The question is given with --prompt or on standard input; on a
terminal without --prompt, chat holds a conversation. The model's thinking is shown only on a terminal.

With --mcp the model may call the tools of servers in $LMCADDY_HOME/mcp.json, and each call is shown on standard error.
The server has to allow that (allow plugin_mcp). With --host, the token needs the scope mcp.plugin.`
	cmd.Args = cobra.ExactArgs(1)
	to := newConnection(cmd)
	flags := cmd.Flags()
	prompt := flags.StringP("prompt", "p", "", "what to ask")
	system := flags.StringP("system", "s", "", "instructions for the model (the system prompt)")
	reasoning := flags.String("reasoning", "", "off, low, medium, high or on (default: the model's own choice)")
	temperature := flags.Float64("temperature", 0, "0 to 1; 0: always the same answer (default: the model's own)")
	servers := flags.StringSlice("mcp", nil, "an MCP server whose tools the model may call, as mcp.json names it (may be repeated, or separated by commas)")
	_ = cmd.RegisterFlagCompletionFunc("mcp", completeMCP) // it fails only if there is no such flag
	stats := flags.Bool("stats", false, "print tokens and times to standard error")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ch := chat{cmd: cmd, stats: *stats}
		ch.request = client.ChatRequest{Model: args[0], Input: *prompt, System: *system, Reasoning: *reasoning}
		var err error
		if ch.request.Integrations, err = integrations(*servers); err != nil {
			return err
		}
		if flags.Changed("temperature") {
			ch.request.Temperature = temperature
		}
		if !flags.Changed("prompt") {
			if isTerminal(cmd.InOrStdin()) {
				return to.use(func(c *client.Client) error { return ch.converse(cmd.Context(), c) })
			}
			question, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("reading the question from standard input: %w", err)
			}
			ch.request.Input = strings.TrimSpace(string(question))
		}
		if strings.TrimSpace(ch.request.Input) == "" {
			return errors.New("there is nothing to ask: give a question with --prompt or on standard input")
		}
		return to.talk(cmd, func(ctx context.Context, c *client.Client) error {
			_, err := ch.ask(ctx, c) // the result is for conversations
			return err
		})
	}
}

// converse sends each line that is typed, until the input ends. The server stores the conversation.
func (ch *chat) converse(ctx context.Context, c *client.Client) error {
	notes := ch.cmd.ErrOrStderr()
	fmt.Fprintln(notes, "Ctrl-C ends an answer, Ctrl-D the conversation.")
	ch.request.Store = true
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	lines := ch.lines()
	for {
		fmt.Fprint(notes, "> ")
		select {
		case line, ok := <-lines:
			if !ok {
				fmt.Fprintln(notes)
				return nil
			}
			if ch.request.Input = strings.TrimSpace(line); ch.request.Input == "" {
				continue
			}
		case <-interrupts:
			fmt.Fprintln(notes)
			return nil
		}
		if err := ch.turn(ctx, c, interrupts); err != nil {
			return err
		}
	}
}

// lines reads the lines of the input while the conversation lasts.
func (ch *chat) lines() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(ch.cmd.InOrStdin())
		in.Buffer(nil, maxQuestion)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	return lines
}

// turn asks one question of a conversation. An error ends the conversation.
func (ch *chat) turn(ctx context.Context, c *client.Client, interrupts <-chan os.Signal) error {
	notes := ch.cmd.ErrOrStderr()
	answering, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-done:
		}
	}()
	result, err := ch.ask(answering, c)
	var refused *client.Error
	switch {
	case answering.Err() != nil:
		fmt.Fprintln(notes, "(interrupted: the question and its answer were discarded)")
	case errors.As(err, &refused):
		fmt.Fprintln(notes, "Error:", err)
	case err != nil:
		return err
	case result.Response != "":
		ch.request.Previous, ch.request.System = result.Response, "" // inherited from the first turn
	}
	return nil
}

// maxQuestion bounds a line of a conversation, in bytes.
const maxQuestion = 16 << 20

// ask prints an answer as it comes.
func (ch *chat) ask(ctx context.Context, c *client.Client) (client.ChatResult, error) {
	p := newAnswerPrinter(ch.cmd.OutOrStdout(), ch.cmd.ErrOrStderr())
	result, err := c.Chat(ctx, ch.request, p.show)
	if ended := p.end(); err == nil {
		err = ended
	}
	err = explainIntegrations(err)
	if err == nil && ch.stats {
		s := result.Stats
		fmt.Fprintf(ch.cmd.ErrOrStderr(), "%d tokens in, %d out (%d of them reasoning), %.1f tokens/s, first token after %.2f s",
			s.Input, s.Output, s.Reasoning, s.PerSecond, s.FirstToken)
		if s.LoadSeconds > 0 {
			fmt.Fprintf(ch.cmd.ErrOrStderr(), ", loaded in %.1f s", s.LoadSeconds)
		}
		fmt.Fprintln(ch.cmd.ErrOrStderr())
	}
	return result, err
}
