package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineLoad defines `lmcaddy load`.
func DefineLoad(cmd *cobra.Command) {
	cmd.Long = `Loads a model, and returns when it is ready. If it is already loaded, this creates a second instance.

Defaults depend on the model, the Caddyfile and the available memory. With --estimate-only nothing is loaded: it shows how
much memory a load would take, whether it fits, and what would be unloaded for it.`
	cmd.Example = `  lmcaddy load lmcaddy/tinychat
  lmcaddy load lmcaddy/tinychat --context-length 4096 --parallel 2 --ttl 30m
  lmcaddy load lmcaddy/tinychat --identifier helper
  lmcaddy load lmcaddy/tinychat --estimate-only`
	cmd.Args = cobra.ExactArgs(1)
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = CompleteModels(to)
	flags := cmd.Flags()
	flags.IntP("context-length", "c", 0, "tokens for one request")
	flags.Int("eval-batch-size", 0, "prompt tokens that are evaluated at a time")
	flags.Int("num-experts", 0, "experts that a mixture-of-experts model uses for each token")
	flags.Bool("flash-attention", false, "use flash attention; =false: don't")
	flags.Bool("offload-kv-cache-to-gpu", false, "keep the cache on the GPU; =false: in the machine's memory")
	flags.Int("parallel", 0, "requests that it answers at a time")
	flags.String("ttl", "", "how long it may stay idle before it is unloaded, such as 30m or 2h; never: it stays (default: its settings)")
	flags.String("identifier", "", "a name for the instance, by which requests can use it (default: the model's key)")
	estimate := flags.Bool("estimate-only", false, "load nothing, and show what a load would take; the exit status is 1 if it can't be")
	asJSON := flags.Bool("json", false, "print JSON, as POST /api/v1/models/load has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := loadRequest(cmd, args[0])
		if err != nil {
			return err
		}
		line := terminal.NewProgress(cmd.ErrOrStderr())
		var answer json.RawMessage
		err = to.Talk(cmd, func(ctx context.Context, c *client.Client) (err error) {
			if request["model"], err = kit.FullName(ctx, cmd, c, args[0]); err != nil {
				return err
			}
			answer, err = c.Load(ctx, request, func(progress float64) {
				line.Update("load", "loading %s  %.0f%%", args[0], 100*progress)
			})
			return err
		})
		line.End()
		switch {
		case err != nil:
			return err
		case *estimate:
			return showEstimate(cmd, request, answer, *asJSON)
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), answer)
		}
		got := resource.Loaded{Config: new(resource.LoadConfig)}
		if err := kit.Decode(answer, &got); err != nil {
			return err
		}
		noteLess(cmd.ErrOrStderr(), request, got.Config)
		_, err = terminal.Printf(cmd.OutOrStdout(), "%s is loaded, in %.1f s, with a context of %d tokens.\n",
			got.Instance, got.Seconds, got.Config.ContextLength)
		return err
	}
}

// noteLess says what an instance got less of than a request asks for.
func noteLess(notes io.Writer, request map[string]any, got *resource.LoadConfig) {
	if asked, ok := request["context_length"].(int); ok && asked > got.ContextLength {
		terminal.Printf(notes,
			"It can't have the context of %d tokens that was asked for: \"lmcaddy show\" tells how much it can have.\n", asked)
	}
	if asked, ok := request["parallel"].(int); ok && got.Parallel != nil && asked > *got.Parallel {
		terminal.Printf(notes, "It answers %s at a time, not %d: the memory has no room for more.\n", kit.Count(*got.Parallel, "request"),
			asked)
	}
}

func showEstimate(cmd *cobra.Command, request map[string]any, answer json.RawMessage, asJSON bool) error {
	out := cmd.OutOrStdout()
	var e resource.LoadEstimate
	if err := kit.Decode(answer, &e); err != nil {
		return err
	}
	if asJSON {
		return errors.Join(kit.WriteJSON(out, answer), notFitting(&e))
	}
	noteLess(cmd.ErrOrStderr(), request, &e.Config)
	f := facts{columns: terminal.Columns(out)}
	terminal.Println(&f, e.Model)
	writeEstimate(&f, &e)
	if _, err := io.WriteString(out, f.String()); err != nil {
		return err
	}
	return notFitting(&e)
}

// TTLSeconds returns the value of --ttl in seconds; 0: for ever.
func TTLSeconds(text string) (int, error) {
	if text == "never" {
		return 0, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 { // as lms has it
		return n, nil
	}
	after, err := caddy.ParseDuration(text)
	if err != nil || after < 0 || after > 0 && after < time.Second {
		return 0, fmt.Errorf("--ttl %s: give a duration of a second or longer, such as 30m or 2h, or never", text)
	}
	return int(after.Seconds()), nil
}

func loadRequest(cmd *cobra.Command, model string) (request map[string]any, err error) {
	request = map[string]any{"model": model, "echo_load_config": true}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		field, text := strings.ReplaceAll(f.Name, "-", "_"), f.Value.String()
		switch {
		case slices.Contains([]string{"host", "token", "json"}, f.Name):
		case f.Name == "ttl":
			request[field], err = TTLSeconds(text)
		case f.Value.Type() == "bool":
			request[field] = text == "true"
		case f.Value.Type() == "int":
			request[field], _ = strconv.Atoi(text) // it was one
		default:
			request[field] = text
		}
	})
	return request, err
}

func writeEstimate(f *facts, e *resource.LoadEstimate) {
	f.add("Context", "%d tokens for each request", e.Config.ContextLength)
	f.add("Parallel", "%s at a time", kit.Count(e.Slots, "request"))
	f.add("Memory needed", "%s (%s)", kit.Size(e.Memory.Total), memoryParts(&e.Memory))
	free := "no limit is set"
	if e.Budget != nil && e.Free != nil {
		free = fmt.Sprintf("%s of %s for all models", kit.Size(*e.Free), kit.Size(*e.Budget))
	}
	f.add("Memory free", "%s", free)
	for _, d := range e.Devices[min(1, len(e.Devices)):] {
		f.add("Free on "+d.Name, "%s of %s for all models", kit.Size(max(0, d.Budget-d.Taken)), kit.Size(d.Budget))
	}
	if e.Placement != "" {
		f.add("Placement", "%s", e.Placement)
	}
	f.add("Confidence", "%s", map[string]string{
		"measured": "measured when it was last loaded", "high": "high", "low": "low: its file lacks figures",
	}[e.Memory.Confidence])
	f.add("Estimate", "%s", outlookInWords(e))
}

// memoryParts lists the parts of an estimate that take something.
func memoryParts(m *resource.MemoryEstimate) string {
	var parts []string
	for _, part := range []struct {
		name string
		size int64
	}{
		{"weights", m.Weights},
		{"context", m.KVCache},
		{"computation", m.Compute},
		{"images", m.Projector},
		{"draft model", m.Draft},
		{"prompt cache", m.PromptCache},
		{"engine", m.Engine},
	} {
		if part.size > 0 {
			parts = append(parts, part.name+" "+kit.Size(part.size))
		}
	}
	return strings.Join(parts, ", ")
}

func outlookInWords(e *resource.LoadEstimate) string {
	if !e.Fits {
		return "it can't be loaded"
	}
	text := "it can be loaded at once"
	switch s := e.Smaller; {
	case s == nil:
	case s.ContextLength > 0 && s.ContextLength < e.Config.ContextLength:
		text = fmt.Sprintf("it can be loaded with a context of %d tokens, for %s at a time, in %s", s.ContextLength,
			kit.Count(s.Slots, "request"), kit.Size(s.Memory))
	case s.Slots == e.Slots:
		text = "it can be loaded with a smaller prompt cache, in " + kit.Size(s.Memory)
	default:
		text = fmt.Sprintf("it can be loaded for %s at a time, in %s", kit.Count(e.Smaller.Slots, "request"), kit.Size(e.Smaller.Memory))
	}
	var first []string
	if n := len(e.Evicts) + e.Others; n > 0 {
		names := strings.Join(e.Evicts, ", ")
		if e.Others > 0 {
			names = strings.TrimPrefix(names+", and "+kit.Count(e.Others, "model")+" of others", ", and ")
		}
		first = append(first, names+" would be unloaded for it")
	}
	if len(e.Shrinks) > 0 {
		first = append(first, strings.Join(e.Shrinks, ", ")+" would be made smaller for it")
	}
	if e.Waits {
		first = append(first, "it would wait until requests have ended")
	}
	if len(first) > 0 {
		text = strings.TrimSuffix(text, " at once") + "; " + strings.Join(first, "; ")
	}
	return text
}

// notFitting is the error of an estimate for a load that is impossible; nil: it is possible.
func notFitting(e *resource.LoadEstimate) error {
	if e.Fits {
		return nil
	}
	return errors.New(strings.TrimRight(e.Reason, ". "))
}
