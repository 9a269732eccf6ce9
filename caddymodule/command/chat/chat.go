// Package chat has the commands that talk to models: chat, conversations and their saved states, MCP servers.
package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// chat is one run of `lmcaddy chat`.
type chat struct {
	cmd     *cobra.Command
	to      *kit.Connection
	request client.ChatRequest
	images  []client.ChatInput // for the next question
	system  *string            // what it was told to be, for later conversations
	stats   bool
	yes     bool   // download a model that is missing
	goOn    string // the conversation to continue; lastConversation: the newest one; empty: none
	begun   string // the id of the conversation, once it has one
}

// lastConversation is the value of --continue without an id.
const lastConversation = "last"

var reasonings = []string{"off", "low", "medium", "high", "on"}

// chatFlags are the flags whose values need a look.
type chatFlags struct {
	prompt, system   string
	temperature      float64
	images, servers  []string
	ttl              string
	asJSON, noRecord bool
}

// Define defines `lmcaddy chat`.
func Define(cmd *cobra.Command) {
	cmd.Long = `Asks a model, and prints its answer as it arrives. Without --prompt on a terminal, chat holds a conversation, which the
server stores; "/help" there lists what can be typed. Otherwise the question is --prompt, then what is on standard input. The
model's thinking is shown only on a terminal.

Without MODEL, it asks the loaded model, the one of the last conversation, or the only one there is.

With --mcp the model may call the tools of servers in $LMCADDY_HOME/mcp.json, and each call is shown on standard error.
The server has to allow that (allow plugin_mcp). With --host, the token needs the scope mcp.plugin.`
	cmd.Example = `  lmcaddy chat lmcaddy/tinychat
  lmcaddy chat lmcaddy/tinychat --prompt "What is a shelf for?"
  cat README.md | lmcaddy chat --prompt "Summarize this."
  lmcaddy chat --continue`
	cmd.Args = cobra.MaximumNArgs(2)
	ch := &chat{cmd: cmd, to: kit.NewConnection(cmd)}
	cmd.ValidArgsFunction = models.CompleteModels(ch.to)
	var given chatFlags
	flags := cmd.Flags()
	flags.StringVarP(&given.prompt, "prompt", "p", "", "what to ask")
	flags.StringVarP(&given.system, "system", "s", "", "instructions for the model (the system prompt)")
	flags.StringVar(&ch.request.Reasoning, "reasoning", "", "off, low, medium, high or on (default: the model's own choice)")
	flags.Float64Var(&given.temperature, "temperature", 0, "0 to 1; 0: always the same answer (default: the model's own)")
	flags.IntVarP(&ch.request.ContextLength, "context-length", "c", 0, "tokens for one request, if this loads the model")
	flags.StringVar(&given.ttl, "ttl", "",
		"how long the model may stay idle before it is unloaded, such as 30m, or never; if this loads it")
	flags.StringArrayVar(&given.images, "image", nil,
		"an image for the question: the `FILE`, in PNG, JPEG, WebP, GIF or BMP (may be repeated)")
	flags.StringSliceVar(&given.servers, "mcp", nil,
		"an MCP server whose tools the model may call, as mcp.json names it (may be repeated, or separated by commas)")
	_ = cmd.RegisterFlagCompletionFunc("mcp", completeMCP) // it fails only if there is no such flag
	_ = cmd.RegisterFlagCompletionFunc("reasoning", cobra.FixedCompletions(reasonings, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&ch.goOn, "continue", "", "continue the conversation `ID`, or the last one; \"lmcaddy conversations ls\" lists them")
	flags.Lookup("continue").NoOptDefVal = lastConversation
	flags.BoolVarP(&ch.yes, "yes", "y", false, "download the model without asking, if it is missing")
	flags.BoolVar(&ch.stats, "stats", false, "print tokens and times to standard error")
	flags.BoolVar(&given.asJSON, "json", false, "print the answer as JSON, as POST /api/v1/chat has it")
	flags.BoolVar(&given.noRecord, "no-history", false, "don't keep what is typed in $LMCADDY_HOME/chat_history")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := ch.take(given, args); err != nil {
			return err
		}
		if terminal.Is(cmd.InOrStdin()) && !flags.Changed("prompt") {
			if given.asJSON {
				return errors.New("--json is for a single question: give it with --prompt or on standard input")
			}
			return ch.to.Use(func(c *client.Client) error { return ch.converse(cmd.Context(), c, !given.noRecord) })
		}
		question, err := ch.question(given.prompt)
		if err != nil {
			return err
		}
		return ch.to.Talk(cmd, func(ctx context.Context, c *client.Client) error { return ch.askOnce(ctx, c, question, given.asJSON) })
	}
}

// take checks the flags and arguments, and puts them into the request.
func (ch *chat) take(given chatFlags, args []string) error {
	flags := ch.cmd.Flags()
	if ch.goOn == lastConversation && len(args) > 0 && isConversationID(args[0]) { // --continue ID without =
		ch.goOn, args = args[0], args[1:]
	}
	if flags.Changed("continue") && kit.IsBlank(ch.goOn) {
		return errors.New("--continue= needs the id of a conversation; without =, it continues the last one")
	}
	if len(args) > 1 {
		return fmt.Errorf("one MODEL at a time: %q and %q were given", args[0], args[1])
	}
	if len(args) == 1 {
		ch.request.Model = args[0]
	}
	if flags.Changed("reasoning") {
		if err := kit.CheckValue("reasoning", ch.request.Reasoning, reasonings); err != nil {
			return err
		}
	}
	var err error
	if ch.request.Integrations, err = integrations(given.servers); err != nil {
		return err
	}
	for _, path := range given.images {
		image, err := readImage(path)
		if err != nil {
			return err
		}
		ch.images = append(ch.images, image)
	}
	if flags.Changed("temperature") {
		if err := checkTemperature(given.temperature, flags.Lookup("temperature").Value.String()); err != nil {
			return err
		}
		ch.request.Temperature = &given.temperature
	}
	if flags.Changed("system") {
		ch.request.System, ch.system = &given.system, &given.system
	}
	if flags.Changed("ttl") {
		seconds, err := models.TTLSeconds(given.ttl)
		if err != nil {
			return err
		}
		ch.request.TTL = &seconds
	}
	return nil
}

// question is the prompt, followed by what is on standard input, unless that is a terminal.
func (ch *chat) question(prompt string) (string, error) {
	in := ch.cmd.InOrStdin()
	if file, isFile := in.(*os.File); isFile {
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 {
			in = strings.NewReader("") // a terminal, or nothing
		}
	}
	text, err := io.ReadAll(io.LimitReader(in, kit.MaxQuestion+1))
	if err != nil {
		return "", fmt.Errorf("reading the question from standard input: %w", err)
	}
	if len(text) > kit.MaxQuestion {
		return "", fmt.Errorf("standard input has more than the %d MB that one question may have", kit.MaxQuestion>>20)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", errors.New("standard input isn't text: give an image with --image FILE, and of another document its text")
	}
	question := strings.TrimSpace(prompt + "\n\n" + strings.TrimRight(string(text), " \t\r\n"))
	if question == "" && len(ch.images) == 0 {
		return "", errors.New("there is nothing to ask: give a question with --prompt or on standard input")
	}
	return question, nil
}

// askOnce asks a single question. Only an answer to a conversation is stored.
func (ch *chat) askOnce(ctx context.Context, c *client.Client, question string, asJSON bool) error {
	if err := ch.prepare(ctx, c); err != nil {
		return err
	}
	ch.request.Input, ch.request.Store = ch.input(question), ch.goOn != ""
	if !asJSON {
		_, err := ch.ask(ctx, c, newAnswerPrinter(ch.cmd.OutOrStdout(), ch.cmd.ErrOrStderr()))
		return err
	}
	answer, err := c.ChatWhole(ctx, ch.request)
	if err != nil {
		return explainIntegrations(err)
	}
	return kit.WriteJSON(ch.cmd.OutOrStdout(), answer)
}

func (ch *chat) input(question string) any {
	if len(ch.images) == 0 {
		return question
	}
	parts := ch.images
	if question != "" {
		parts = append(parts, client.ChatInput{Type: "message", Content: question})
	}
	ch.images = nil
	return parts
}

// prepare finds the conversation to continue, and the model.
func (ch *chat) prepare(ctx context.Context, c *client.Client) error {
	if ch.goOn != "" {
		if err := ch.resume(ctx, c); err != nil {
			return err
		}
	}
	if ch.request.Model == "" {
		if err := ch.chooseModel(ctx, c); err != nil {
			return err
		}
	}
	var err error
	ch.request.Model, err = ch.fetchMissing(ctx, c, ch.request.Model)
	return err
}

func (ch *chat) ask(ctx context.Context, c *client.Client, p *answerPrinter) (client.ChatResult, error) {
	result, err := c.Chat(ctx, ch.request, p.show)
	if ended := p.end(); err == nil {
		err = ended
	}
	err = explainIntegrations(err)
	if err == nil && ch.stats {
		s := result.Stats
		terminal.Printf(ch.cmd.ErrOrStderr(), "%d tokens in, %d out (%d reasoning), %.1f tokens/s, first after %.2f s",
			s.Input, s.Output, s.Reasoning, s.PerSecond, s.FirstToken)
		if s.LoadSeconds > 0 {
			terminal.Printf(ch.cmd.ErrOrStderr(), ", loaded in %.1f s", s.LoadSeconds)
		}
		fmt.Fprintln(ch.cmd.ErrOrStderr())
	}
	return result, err
}

// chooseModel chooses the model if none was named, and says which: the loaded one, that of the last conversation, the only one, or the
// one that the user picks.
func (ch *chat) chooseModel(ctx context.Context, c *client.Client) error {
	list, err := c.Models(ctx)
	if err != nil {
		return err
	}
	var all, loaded []string
	for i := range list.Models {
		if m := &list.Models[i]; m.Type == "llm" {
			all = append(all, m.Key)
			if len(m.Instances) > 0 {
				loaded = append(loaded, m.Key)
			}
		}
	}
	why := ""
	switch {
	case len(all) == 0:
		return errors.New("there is no model to ask: \"lmcaddy get MODEL\" downloads one, \"lmcaddy import FILE\" adds a local file")
	case len(loaded) == 1:
		ch.request.Model, why = loaded[0], "it is loaded"
	case len(all) == 1:
		ch.request.Model, why = all[0], "it is the only one"
	default:
		if ch.request.Model = lastUsed(ctx, c, list.Models); ch.request.Model != "" {
			why = "the last conversation was with it"
		}
	}
	if why != "" {
		terminal.Printf(ch.cmd.ErrOrStderr(), "Asking %s: %s.\n", ch.request.Model, why)
		return nil
	}
	if !kit.CanAsk(ch.cmd) {
		return fmt.Errorf("there are several models: name one of %s", strings.Join(all, ", "))
	}
	ch.request.Model, err = kit.AskWhich(ctx, ch.cmd, "Which model?", all, all, "no model was chosen")
	return err
}

// lastUsed returns the model of the last conversation if it is still there; empty: there is none.
func lastUsed(ctx context.Context, c *client.Client, models []resource.Model) string {
	last, err := c.Conversations(ctx, nil, "", "", 1)
	if err != nil || len(last.Conversations) == 0 {
		return ""
	}
	for i := range models {
		if models[i].Key == last.Conversations[0].Model {
			return models[i].Key
		}
	}
	return ""
}

// fetchMissing downloads a model that the server doesn't have, if the user wants that, and returns the name by which it can be asked.
func (ch *chat) fetchMissing(ctx context.Context, c *client.Client, model string) (string, error) {
	full, err := kit.FullName(ctx, ch.cmd, c, model)
	if err == nil || errors.As(err, new(*client.DownError)) {
		return full, err
	}
	plan, failed := c.Preview(ctx, model, "")
	switch {
	case failed != nil && !strings.Contains(model, "/"):
		return "", err // it is no name of the hub; the error names models that are there
	case !ch.yes && !kit.CanAsk(ch.cmd):
		return "", fmt.Errorf("%s isn't downloaded: \"lmcaddy get %s\" downloads it, and so does --yes here", model, model)
	case failed != nil:
		return "", failed
	}
	terminal.Printf(ch.cmd.ErrOrStderr(), "%s isn't downloaded.\n", model)
	if err := models.ShowPlan(ch.cmd.ErrOrStderr(), model, &plan); err != nil {
		return "", err
	}
	if !ch.yes {
		answer, err := kit.AskLine(ctx, ch.cmd, "Download it? [y/N] ")
		if err != nil {
			return "", err
		}
		if !kit.IsYes(answer) {
			return "", errors.New("nothing was downloaded")
		}
	}
	job, err := c.Download(ctx, model, "")
	if err == nil && job.ID != "" {
		job, err = models.AwaitJob(ctx, ch.cmd, c, job.ID, model)
	}
	return cmp.Or(job.Model, plan.Model, model), err
}
