package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// polish makes a command of ours, and those below it, alike: texts fit 80 columns, and errors about the command line say what to type.
func polish(cmd *cobra.Command) {
	cmd.Long = wrap(cmd.Long, 80)
	cmd.SetFlagErrorFunc(flagError)
	switch check := cmd.Args; {
	case cmd.HasSubCommands():
		cmd.Args, cmd.RunE = subcommandError, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case check != nil:
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, kit.IsBlank) {
				return fmt.Errorf("an argument of \"%s\" is empty: in a script, see whether its variable is set", cmd.CommandPath())
			}
			return argumentError(cmd, args, check(cmd, args))
		}
	}
	for _, sub := range cmd.Commands() {
		polish(sub)
	}
}

// wrap breaks the lines of a text anew, but neither those that begin with a space nor between paragraphs.
func wrap(text string, columns int) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, terminal.Wrap(strings.Join(paragraph, " "), columns+1, 0))
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			end()
			out = append(out, line)
		} else {
			paragraph = append(paragraph, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var wrong *pflag.InvalidValueError
	if errors.As(err, &unknown) {
		if said := everydayFlag(cmd, unknown.GetSpecifiedName()); said != "" {
			dashes := "--"
			if unknown.GetSpecifiedShortnames() != "" {
				dashes = "-"
			}
			return fmt.Errorf("%s has no flag %s%s: %s", cmd.CommandPath(), dashes, unknown.GetSpecifiedName(), kit.InWords(said))
		}
	}
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("%s has no flag -%s: \"%s --help\" lists them", cmd.CommandPath(), unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &unknown):
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				flags = append(flags, "--"+f.Name)
			}
		})
		said := fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), unknown.GetSpecifiedName())
		if near := nearest.DidYouMean("--"+unknown.GetSpecifiedName(), flags); near != "" {
			return errors.New(said + near)
		}
		return fmt.Errorf("%s: \"%s --help\" lists them", said, cmd.CommandPath())
	case errors.As(err, &wrong):
		kind := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint": "a whole number", "float64": "a number", "bool": "true or false",
			"duration": "a duration such as 90s, 30m or 24h",
		}[wrong.GetFlag().Value.Type()]
		if kind != "" {
			return fmt.Errorf("--%s %s: give %s", wrong.GetFlag().Name, wrong.GetValue(), kind)
		}
		return fmt.Errorf("--%s %s: %w", wrong.GetFlag().Name, wrong.GetValue(), errors.Unwrap(wrong))
	}
	return err
}

// subcommandError is the error about an argument of a command that has commands below it.
func subcommandError(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names, others []string
	for _, sub := range cmd.Commands() {
		names, others = append(names, sub.Name()), append(others, sub.Aliases...)
	}
	said := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if instead := everydaySubcommands[cmd.Name()+" "+args[0]]; instead != "" {
		return errors.New(said + ": " + kit.InWords(instead))
	}
	if near := nearest.DidYouMean(args[0], names); near != "" {
		return errors.New(said + near)
	}
	names = append(names, others...)
	slices.Sort(names)
	return fmt.Errorf("%s; there are: %s", said, strings.Join(names, ", "))
}

// argumentError says what to type instead of a wrong number of arguments.
func argumentError(cmd *cobra.Command, args []string, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "accepts ") && !strings.HasPrefix(err.Error(), "requires ") &&
		!strings.HasPrefix(err.Error(), "unknown command ") {
		return err
	}
	_, usage, _ := strings.Cut(cmd.Use, " ")
	how := strings.TrimSpace(cmd.CommandPath() + " " + usage)
	switch {
	case len(args) == 0:
		return fmt.Errorf("something is missing: type \"%s\" (\"%s --help\" explains it)", how, cmd.CommandPath())
	case strings.HasPrefix(err.Error(), "unknown command "):
		return fmt.Errorf("%s takes no arguments, and was given %q (\"%s --help\" explains it)", cmd.CommandPath(), args[0],
			cmd.CommandPath())
	default:
		return fmt.Errorf("%s was given too many arguments: type \"%s\"", cmd.CommandPath(), how)
	}
}
