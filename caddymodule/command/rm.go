package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// defineRM defines `lmcaddy rm`.
func defineRM(cmd *cobra.Command) {
	cmd.Long = `Deletes a model's files from the server's own models folder. A model that is loaded isn't deleted, nor is one
in another folder (models_dir, another program's store). Of a symbolic link, only the link is deleted.`
	cmd.Args = cobra.ExactArgs(1)
	to := newConnection(cmd)
	yes := cmd.Flags().BoolP("yes", "y", false, "don't ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.talk(cmd, func(ctx context.Context, c *client.Client) error {
			if !*yes {
				if err := confirmRemoval(ctx, cmd, c, args[0]); err != nil {
					return err
				}
			}
			if err := c.Remove(ctx, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[0]+" is deleted.")
			return err
		})
	}
}

// confirmRemoval asks the user at the terminal.
func confirmRemoval(ctx context.Context, cmd *cobra.Command, c *client.Client, key string) error {
	if !isTerminal(cmd.InOrStdin()) {
		return errors.New("nothing was deleted: there is no terminal to ask at. Give --yes to delete without being asked")
	}
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	size := ""
	for _, m := range models.Models {
		if goesBy(m.Key, key) {
			size = " (" + humanize.Bytes(uint64(max(0, m.SizeBytes))) + ")"
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Delete %s%s? [y/N] ", key, size)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		if said != "y" && said != "yes" {
			return errors.New("nothing was deleted")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
