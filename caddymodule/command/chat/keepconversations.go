package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

func defineConversationsEdit(cmd *cobra.Command, to *kit.Connection, owner func() *string) {
	cmd.Long = `Gives a conversation another title, or pins it: pinned conversations come first in the page's list.`
	cmd.Example = `  lmcaddy conversations edit 3f9a1c22ab --title "A holiday in France"
  lmcaddy conversations edit 3f9a1c22ab --pinned`
	cmd.Args = cobra.ExactArgs(1)
	title := cmd.Flags().String("title", "", "the title; empty: its first question")
	pinned := cmd.Flags().Bool("pinned", false, "pin it; =false: no longer")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change := map[string]any{}
		if cmd.Flags().Changed("title") {
			change["title"] = *title
		}
		if cmd.Flags().Changed("pinned") {
			change["pinned"] = *pinned
		}
		if len(change) == 0 {
			return errors.New("say what to change: --title TITLE, --pinned or --pinned=false")
		}
		if err := checkConversationID(args[0]); err != nil {
			return err
		}
		return to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			made, err := c.EditConversation(ctx, owner(), args[0], change)
			if err != nil {
				return explainConversation(err)
			}
			return writeConversations(cmd.OutOrStdout(), []resource.Conversation{made}, false)
		})
	}
}

func defineConversationsExport(cmd *cobra.Command, to *kit.Connection, owner func() *string) {
	cmd.Long = `Writes a conversation, or with --all each, to standard output or to a file, with what the model thought. JSON has
everything that is stored, images included, and can be imported; Markdown is for people.`
	cmd.Example = `  lmcaddy conversations export -o chat.md 3f9a1c22ab
  lmcaddy conversations export --all -o chats.json`
	formats := []string{formatMarkdown, formatJSON}
	format := cmd.Flags().String("format", "", "md or json (default: by the file's name, else md)")
	// it fails only if there is no such flag
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	path := cmd.Flags().StringP("output", "o", "", "write to this new `FILE`, which only you can read")
	all := cmd.Flags().Bool("all", false, "export all conversations of the owner")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *format == "" {
			*format = formatOf(*path)
		}
		if err := kit.CheckValue("format", *format, formats); err != nil {
			return err
		}
		if (len(args) == 1) == *all || len(args) > 1 {
			return errors.New("name one conversation to export, or else give --all: \"lmcaddy conversations ls\" lists them")
		}
		var what exported
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) (err error) {
			what, err = exportedFrom(ctx, c, owner(), args)
			return err
		})
		switch {
		case err != nil:
			return err
		case *path == "":
			return what.write(cmd.OutOrStdout(), *format)
		}
		return exportTo(*path, what, *format, false)
	}
}

// exported are the conversations that are written to a file. All together are what the page exports, and imports.
type exported struct {
	Conversations []resource.Conversation `json:"conversations"`
	isOne         bool
}

func exportedFrom(ctx context.Context, c *client.Client, owner *string, ids []string) (what exported, err error) {
	if what.isOne = len(ids) > 0; !what.isOne {
		list, err := listConversations(ctx, c, owner, "", 0)
		if err != nil {
			return what, err
		}
		for i := range list.Conversations {
			ids = append(ids, list.Conversations[i].ID)
		}
	}
	what.Conversations = make([]resource.Conversation, len(ids))
	for i, id := range ids {
		if err = checkConversationID(id); err == nil {
			what.Conversations[i], err = c.Conversation(ctx, owner, id, true)
		}
		if err != nil {
			return what, explainConversation(err)
		}
	}
	return what, nil
}

func (e exported) write(out io.Writer, format string) error {
	switch {
	case format == formatJSON && e.isOne:
		return kit.WriteJSON(out, e.Conversations[0])
	case format == formatJSON:
		return kit.WriteJSON(out, e)
	}
	for i := range e.Conversations {
		if i > 0 {
			fmt.Fprintln(out, "\n---")
		}
		if err := writeTranscript(out, &e.Conversations[i], transcriptOptions{thinking: true}); err != nil {
			return err
		}
	}
	return nil
}

func defineConversationsImport(cmd *cobra.Command, to *kit.Connection, _ func() *string) {
	cmd.Long = `Stores the conversations of files that "lmcaddy conversations export" or the page has written as JSON. They get new
ids, and belong to the user who imports them.`
	cmd.Example = "  lmcaddy conversations import chats.json"
	cmd.Args = cobra.MinimumNArgs(1)
	_ = cmd.Flags().MarkHidden("owner") // it fails only if there is no such flag
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var all []json.RawMessage
		for _, path := range args {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var several struct {
				Conversations []json.RawMessage `json:"conversations"`
			}
			if err := json.Unmarshal(text, &several); err != nil {
				return fmt.Errorf("%s isn't JSON: export the conversations with --format json", path)
			}
			if several.Conversations == nil {
				several.Conversations = []json.RawMessage{text}
			}
			all = append(all, several.Conversations...)
		}
		return to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			for _, one := range all {
				made, err := c.ImportConversation(ctx, one)
				if err != nil {
					return err
				}
				terminal.Printf(cmd.OutOrStdout(), "%s is imported: %s\n", shortID(made.ID), kit.OneLine(made.Title))
			}
			return nil
		})
	}
}
