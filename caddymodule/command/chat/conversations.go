package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineConversations defines `lmcaddy conversations` with its sub-commands.
func DefineConversations(cmd *cobra.Command) {
	cmd.Long = `Lists, shows, names, pins, deletes, exports and imports the conversations that the server stores: those of "lmcaddy chat", of native chat and of
/v1/responses. Each token has its own; those of "lmcaddy chat" without --host belong to nobody in particular.

A conversation is named by its id, or by the beginning of it that "lmcaddy conversations ls" shows.`
	cmd.Example = `  lmcaddy conversations ls
  lmcaddy conversations export --format json -o chats.json 3f9a1c22ab
  lmcaddy conversations rm --older-than 30d --yes`
	for _, sub := range []struct {
		use, short string
		define     func(*cobra.Command, *kit.Connection, func() *string)
	}{
		{"ls [WORDS]", "Lists the conversations, the last updated first", defineConversationsLS},
		{"show ID", "Shows a conversation", defineConversationsShow},
		{"rm ID... | --all | --older-than AGE", "Deletes conversations", defineConversationsRM},
		{"edit ID", "Names a conversation, or pins it", defineConversationsEdit},
		{"export ID | --all", "Writes conversations as Markdown or JSON", defineConversationsExport},
		{"import FILE...", "Stores conversations that were exported as JSON", defineConversationsImport},
	} {
		child := &cobra.Command{Use: sub.use, Short: sub.short}
		to := kit.NewConnection(child)
		owner := child.Flags().String("owner", "", "those of this `OWNER`, a token's id; needs the scope admin")
		sub.define(child, to, func() *string {
			if child.Flags().Changed("owner") {
				return owner
			}
			return nil
		})
		cmd.AddCommand(child)
	}
}

// mostOfPage is how many conversations the server lists at a time.
const mostOfPage = 100

func defineConversationsLS(cmd *cobra.Command, to *kit.Connection, owner func() *string) {
	cmd.Long = `Lists the conversations that the server stores, the last updated first; with WORDS those whose titles or texts have them.
"lmcaddy chat --continue ID" goes on with one.`
	cmd.Example = `  lmcaddy conversations ls
  lmcaddy conversations ls holiday in France
  lmcaddy conversations ls --limit 100
  lmcaddy conversations ls --json`
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/conversations has it")
	limit := cmd.Flags().IntP("limit", "n", 20, "how many; 0: all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *limit < 0 {
			return fmt.Errorf("--limit %d: give a number of conversations, or 0 for all", *limit)
		}
		var list resource.Conversations
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) (err error) {
			list, err = listConversations(ctx, c, owner(), strings.Join(args, " "), *limit)
			return err
		})
		switch {
		case err != nil:
			return err
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), list)
		}
		if err := writeConversations(cmd.OutOrStdout(), list.Conversations, len(args) > 0); err != nil {
			return err
		}
		if list.Next != nil {
			terminal.Printf(cmd.ErrOrStderr(), "There are more: --limit %d lists more of them, --limit 0 all.\n", 5**limit)
		}
		return nil
	}
}

// listConversations returns as many conversations with some words as wanted; 0: all.
func listConversations(ctx context.Context, c *client.Client, owner *string, words string, limit int) (resource.Conversations, error) {
	list := resource.Conversations{Conversations: []resource.Conversation{}}
	for cursor := ""; ; {
		size := mostOfPage
		if limit > 0 {
			size = min(size, limit-len(list.Conversations))
		}
		page, err := c.Conversations(ctx, owner, words, cursor, size)
		if err != nil {
			return list, err
		}
		list.Conversations, list.Next = append(list.Conversations, page.Conversations...), page.Next
		if page.Next == nil || limit > 0 && len(list.Conversations) >= limit {
			return list, nil
		}
		cursor = *page.Next
	}
}

func writeConversations(out io.Writer, list []resource.Conversation, isSearch bool) error {
	if isSearch && len(list) == 0 {
		_, err := fmt.Fprintln(out, "No conversation has these words.")
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, kit.InWords("There are no conversations yet. \"lmcaddy chat\" begins one."))
		return err
	}
	return terminal.WriteTable(out, "ID\tUPDATED\tTURNS\tMODEL\tTITLE", list, func(c *resource.Conversation) []string {
		title := kit.OrDash(kit.OneLine(c.Title))
		if c.Pinned {
			title += " (pinned)"
		}
		return []string{shortID(c.ID), humanize.Time(c.Updated.Time), strconv.Itoa(c.Turns), kit.OrDash(c.Model), title}
	})
}

func defineConversationsShow(cmd *cobra.Command, to *kit.Connection, owner func() *string) {
	cmd.Long = `Shows a conversation: what was asked and answered on the way to its newest answer.`
	cmd.Example = "  lmcaddy conversations show resp_0123456789abcdef"
	cmd.Args = cobra.ExactArgs(1)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/conversations/{id} has it")
	thinking := cmd.Flags().Bool("thinking", false, "show what the model thought, too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := getConversation(cmd, to, owner(), args[0])
		switch {
		case err != nil:
			return err
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), found)
		}
		return writeTranscript(cmd.OutOrStdout(), &found, transcriptOptions{thinking: *thinking})
	}
}

func getConversation(cmd *cobra.Command, to *kit.Connection, owner *string, id string) (found resource.Conversation, err error) {
	if err := checkConversationID(id); err != nil {
		return found, err
	}
	err = to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
		found, err = c.Conversation(ctx, owner, id, true)
		return explainConversation(err)
	})
	return found, err
}

func defineConversationsRM(cmd *cobra.Command, to *kit.Connection, owner func() *string) {
	cmd.Long = `Deletes conversations with all their answers, images and saved states: those named, those that weren't continued for some
time, or all.`
	cmd.Example = `  lmcaddy conversations rm 3f9a1c22ab
  lmcaddy conversations rm --older-than 30d`
	all := cmd.Flags().Bool("all", false, "delete all conversations of the owner")
	age := cmd.Flags().String("older-than", "", "delete those whose last answer is older, such as 30d or 12h")
	yes := cmd.Flags().BoolP("yes", "y", false, "don't ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := 0
		for _, is := range []bool{len(args) > 0, *all, cmd.Flags().Changed("older-than")} {
			if is {
				given++
			}
		}
		if given != 1 {
			return errors.New("name the conversations to delete, or else give --all or --older-than AGE: " +
				"\"lmcaddy conversations ls\" lists them")
		}
		before, which := time.Now().Add(24*time.Hour), "all conversations" // whatever the server's clock says
		if !*all && len(args) == 0 {
			old, err := caddy.ParseDuration(kit.InDays(*age))
			if err != nil || old < 0 {
				return fmt.Errorf("--older-than is an age such as 30d, 2w or 12h, and not %q", *age)
			}
			before, which = time.Now().Add(-old), "the conversations that are older than "+*age
		}
		for _, id := range args {
			if err := checkConversationID(id); err != nil {
				return err
			}
		}
		return to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			for _, id := range args {
				if err := c.DeleteConversation(ctx, owner(), id); err != nil {
					return explainConversation(err)
				}
				terminal.Println(cmd.OutOrStdout(), id+" is deleted.")
			}
			if len(args) > 0 {
				return nil
			}
			if !*yes {
				if err := kit.Confirm(ctx, cmd, which); err != nil {
					return err
				}
			}
			n, err := c.DeleteConversations(ctx, owner(), before)
			if err != nil {
				return err
			}
			_, err = terminal.Printf(cmd.OutOrStdout(), "%s deleted.\n", kit.Count(n, "conversation"))
			return err
		})
	}
}

// explainConversation says where the ids are listed, if there is no such conversation.
func explainConversation(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Hint == "" && (refused.Code == "conversation_not_found" || refused.Code == "ambiguous_id") {
		refused.Hint = `"lmcaddy conversations ls" lists them`
	}
	return err
}

// shownDigits is how many digits of an id are shown. Among 100,000 conversations, two that begin alike are unlikely.
const shownDigits = 10

// shortID is the part of a conversation's id by which people name it.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "resp_")
	return id[:min(len(id), shownDigits)]
}

// checkConversationID returns an error about a word that can't name a conversation, before a server is asked.
func checkConversationID(id string) error {
	if isConversationID(id) {
		return nil
	}
	return fmt.Errorf("%q can't be the id of a conversation, or the beginning of one: "+
		"give at least 6 of the digits that \"lmcaddy conversations ls\" lists", id)
}

var conversationID = regexp.MustCompile(`^(resp_)?[0-9a-f]{6,48}$`)

// isConversationID reports whether a word can be the id of a conversation, or the beginning of one.
func isConversationID(word string) bool { return conversationID.MatchString(word) }
