package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// defineLoad defines `lmcaddy load`.
func defineLoad(cmd *cobra.Command) {
	cmd.Long = `Loads a model, and returns when it is ready. If it is already loaded, this creates a second instance.

Defaults depend on the model, the Caddyfile and the available memory.`
	cmd.Args = cobra.ExactArgs(1)
	to := newConnection(cmd)
	flags := cmd.Flags()
	flags.IntP("context-length", "c", 0, "tokens for one request")
	flags.Int("eval-batch-size", 0, "prompt tokens that are evaluated at a time")
	flags.Int("num-experts", 0, "experts that a mixture-of-experts model uses for each token")
	flags.Bool("flash-attention", false, "use flash attention; =false: don't")
	flags.Bool("offload-kv-cache-to-gpu", false, "keep the cache on the GPU; =false: in the machine's memory")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := loadRequest(cmd, args[0])
		if err != nil {
			return err
		}
		got := resource.Loaded{Config: new(resource.LoadConfig)}
		err = to.talk(cmd, func(ctx context.Context, c *client.Client) error {
			return c.Post(ctx, "/api/v1/models/load", request, &got)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is loaded, in %.1f s, with a context of %d tokens.\n", got.Instance, got.Seconds, got.Config.ContextLength)
		return err
	}
}

// loadRequest returns the request, with the fields whose flags were given.
func loadRequest(cmd *cobra.Command, model string) (map[string]any, error) {
	request := map[string]any{"model": model, "echo_load_config": true}
	flags := cmd.Flags()
	for flag, field := range map[string]string{
		"context-length": "context_length", "eval-batch-size": "eval_batch_size", "num-experts": "num_experts",
	} {
		if !flags.Changed(flag) {
			continue
		}
		n, err := flags.GetInt(flag)
		if err != nil {
			return nil, err
		}
		request[field] = n
	}
	for flag, field := range map[string]string{
		"flash-attention": "flash_attention", "offload-kv-cache-to-gpu": "offload_kv_cache_to_gpu",
	} {
		if !flags.Changed(flag) {
			continue
		}
		on, err := flags.GetBool(flag)
		if err != nil {
			return nil, err
		}
		request[field] = on
	}
	return request, nil
}
