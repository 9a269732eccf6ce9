package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// settingsOf is what `lmcaddy config` needs of GET /api/v1/settings.
type settingsOf struct {
	Configuration *resource.Configuration `json:"configuration"`
}

// DefineConfig defines `lmcaddy config`.
func DefineConfig(cmd *cobra.Command) {
	cmd.Long = `Shows the configuration in force: each setting with its value and where it comes from, the sites and who
can reach them, the engines, and models with settings of their own.

It asks the server that runs on $LMCADDY_HOME. If none is running, it reads the Caddyfile of this folder (or that of
--config), and shows what "lmcaddy run" would use. "lmcaddy validate" checks a Caddyfile, "lmcaddy adapt" shows it as JSON.`
	cmd.Example = `  lmcaddy config
  lmcaddy config --path
  lmcaddy config --json`
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	file := cmd.Flags().StringP("config", "c", "", "show what a server would use that is started with this Caddyfile")
	onlyPath := cmd.Flags().Bool("path", false, "print only where the Caddyfile is")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/settings has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file != "" && to.Host != "" {
			return errors.New("--config is for a file on this machine: leave out --host")
		}
		answer, err := configurationInForce(cmd, to, *file)
		if err != nil {
			return err
		}
		var settings settingsOf
		if err := kit.Decode(answer, &settings); err != nil {
			return err
		}
		switch c := settings.Configuration; {
		case *asJSON && !*onlyPath:
			return kit.WriteJSON(cmd.OutOrStdout(), answer)
		case c == nil:
			return errors.New("the server doesn't show its configuration: the token needs the scope admin (lmcaddy token create " +
				"--scopes admin makes one); --json prints what it shows")
		case *onlyPath && c.File == "":
			return errors.New("there is no configuration file: the defaults are in force. To begin with one, write a Caddyfile, " +
				"and start it with \"lmcaddy run\"")
		case *onlyPath:
			_, err := terminal.Println(cmd.OutOrStdout(), c.File)
			return err
		default:
			return writeConfiguration(cmd.OutOrStdout(), c)
		}
	}
}

// configurationInForce returns the settings of the server, or if none is running on the home, those of a file.
func configurationInForce(cmd *cobra.Command, to *kit.Connection, file string) (answer json.RawMessage, _ error) {
	if file != "" {
		return describeFile(file)
	}
	err := to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
		err := c.GetWithin(ctx, statusPatience, "/api/v1/settings", &answer)
		var down *client.DownError
		if to.Host != "" || !errors.As(err, &down) {
			return err
		}
		_, missing := os.Stat("Caddyfile")
		uses := "the Caddyfile of this folder"
		if missing != nil {
			uses = "no Caddyfile, since there is none in this folder"
		}
		said := kit.NothingRuns()
		terminal.Printf(cmd.ErrOrStderr(), "%s: a server that is started here would use %s.\n", strings.ToUpper(said[:1])+said[1:], uses)
		answer, err = describeFile("")
		return err
	})
	return answer, err
}

// describeFile returns what a server would use that is started with a file; empty: with the Caddyfile of this folder, or none.
func describeFile(file string) (json.RawMessage, error) {
	described, err := describedFile(file)
	if err != nil {
		return nil, err
	}
	return json.Marshal(settingsOf{&described.Configuration})
}

func describedFile(file string) (d caddymodule.Described, err error) {
	text, err := readConfig(file)
	if err == nil {
		d, err = caddymodule.Describe(text)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", cmp.Or(file, "Caddyfile"), err)
	}
	if d.File = file; file == "" {
		if _, err := os.Stat("Caddyfile"); err == nil {
			d.File = "Caddyfile"
		}
	}
	if d.File != "" {
		d.File = home.Absolute(d.File)
	}
	return d, nil
}

// readConfig returns a file's configuration as JSON; that of a server without a file if there is none.
func readConfig(file string) ([]byte, error) {
	name := cmp.Or(file, "Caddyfile")
	content, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && file == "":
		return json.Marshal(defaultConfig())
	case err != nil, filepath.Ext(name) == ".json":
		return content, err
	}
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(content, map[string]any{"filename": name})
	return adapted, err
}

// defaultConfig is the configuration of `lmcaddy serve` without flags.
func defaultConfig() *caddy.Config {
	return serveConfig(new(config.Settings), sites{"lmcaddy": newSite(defaultListen, caddymodule.Handler{}, false)})
}

func writeConfiguration(out io.Writer, c *resource.Configuration) error {
	text := terminal.NewPage(out)
	terminal.Printf(text, "Caddyfile  %s\nHome       %s\n", cmp.Or(c.File, "none: the defaults and the flags are in force"), c.Home)
	for _, s := range c.Sites {
		writeSite(text, &s)
	}
	if len(c.Sites) == 0 {
		text.WriteString("\nNo site has lm_api, so only commands on this machine reach the models.\n")
	}
	writeSettings(text, "SETTING", c.Settings)
	for _, e := range c.Engines {
		writeSettings(text, "ENGINE "+e.Name, e.Settings)
	}
	for _, r := range c.Remotes {
		writeSettings(text, "REMOTE "+r.Name, r.Settings)
	}
	for _, m := range c.Models {
		writeSettings(text, "MODEL "+m.Name, m.Settings)
	}
	return text.Flush()
}

func writeSettings(text *terminal.Page, title string, settings []resource.Setting) {
	text.WriteByte('\n')
	_ = terminal.WriteTable(text, terminal.Line(title)+"\tVALUE\tFROM", settings, func(s *resource.Setting) []string { // to memory
		return []string{s.Name, shown(s.Value), s.Source}
	})
}

func writeSite(text *terminal.Page, s *resource.Site) {
	access := "for anybody"
	if s.Authentication {
		access = "with a token"
	}
	from := "on this machine"
	if s.Reachable {
		from = "from other machines"
	}
	terminal.Printf(text, "\nSite %s\n  usable %s, %s\n", strings.Join(s.Addresses, ", "), from, access)
	if s.Page {
		text.WriteString("  page on\n")
	}
	for _, line := range []struct {
		name   string
		values []string
	}{{"hosts", s.Hosts}, {"dialects", s.Dialects}, {"cors", s.CORS}} {
		if len(line.values) > 0 {
			terminal.Printf(text, "  %s %s\n", line.name, shown(strings.Join(line.values, " ")))
		}
	}
}
