package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// manSection is the section of the manual for what administers a system.
const manSection = "8"

// describeManpage makes Caddy's command write pages about lmcaddy. Caddy's own have one title, Caddy, on all of them.
func describeManpage(c *cobra.Command) {
	c.Use, c.DisableFlagsInUseLine = "manpage --directory FOLDER", true
	c.Short = "Writes the manual pages"
	c.Long = `Writes a manual page for lmcaddy and for each of its commands, lmcaddy-serve.8 and
so on, to a folder, which is made if there is none. Their date is that in
$SOURCE_DATE_EPOCH, if it is set.`
	c.Example = "  lmcaddy manpage --directory man"
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := cmd.Flags().GetString("directory")
		if err != nil {
			return err
		}
		if dir == "" {
			return errors.New(`the folder for the pages is missing: type "lmcaddy manpage --directory FOLDER"`)
		}
		date := time.Now()
		if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH is the number of seconds since 1970, not %q", text)
			}
			date = time.Unix(seconds, 0).UTC()
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // manual pages are public
			return err
		}
		return writeManpages(cmd.Root(), dir, date)
	}
}

// writeManpages writes the page of a command, and those of the commands below it.
func writeManpages(cmd *cobra.Command, dir string, date time.Time) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	source := "lmcaddy " + strings.TrimPrefix(cmp.Or(caddy.CustomVersion, "development"), "v")
	cmd.DisableAutoGenTag = true // says which library has written it
	escapeMarkdown(cmd)
	var page bytes.Buffer
	header := doc.GenManHeader{Title: strings.ToUpper(name), Section: manSection, Date: &date, Source: source, Manual: "lmcaddy"}
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+"."+manSection), page.Bytes(), 0o644); err != nil { //nolint:gosec // public
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writeManpages(sub, dir, date); err != nil {
			return err
		}
	}
	return nil
}

// escapeMarkdown keeps what is in angle brackets, such as <publisher>, from being dropped: cobra makes the page of Markdown, where
// that is a tag of HTML. Indented lines are code, which stays as it is.
func escapeMarkdown(cmd *cobra.Command) {
	escape := func(text string) string {
		var all strings.Builder
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
				line = strings.ReplaceAll(line, "<", `\<`)
			}
			all.WriteString(line)
		}
		return all.String()
	}
	cmd.Use, cmd.Short, cmd.Long = escape(cmd.Use), escape(cmd.Short), escape(cmd.Long)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escape(f.Usage) })
}
