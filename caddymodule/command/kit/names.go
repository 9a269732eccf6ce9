package kit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// modelNames returns the keys of the models, and their aliases that are no patterns.
func modelNames(ctx context.Context, c *client.Client) []string {
	models, _ := c.Models(ctx) // without names, there is no suggestion
	var names []string
	for _, m := range models.Models {
		names = append(names, m.Key)
		for _, alias := range m.Aliases {
			if !strings.ContainsAny(alias, `*?[\`) {
				names = append(names, alias)
			}
		}
	}
	return names
}

// FullName returns a name if a model has it, or else that of the one model whose name begins so, up to the end of a word, as
// qwen/qwen3-4b-instruct does with qwen3-4b, and says which that is. The error is that of a server that doesn't answer or has no such
// model; any other shows when the model is used.
func FullName(ctx context.Context, cmd *cobra.Command, c *client.Client, name string) (string, error) {
	_, number, _ := strings.Cut(name, ":")
	if _, err := strconv.Atoi(number); err == nil { // the id of an instance, such as key:2
		return name, nil
	}
	err := c.Get(ctx, "/api/v0/models/"+url.PathEscape(name), nil)
	if _, isDown := errors.AsType[*client.DownError](err); isDown {
		return "", err
	}
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != "model_not_found" {
		return name, nil
	}
	models, _ := c.Models(ctx) // without names, none begins so
	begun, variant, hasVariant := strings.Cut(strings.ToLower(name), "@")
	var found []string
	for i := range models.Models {
		repo, _, _ := strings.Cut(models.Models[i].Key, "@")
		_, bare, _ := strings.Cut(repo, "/")
		for _, whole := range []string{repo, bare} {
			if rest, ok := strings.CutPrefix(whole, begun); ok && rest != "" && strings.ContainsRune("-._", rune(rest[0])) {
				found = append(found, repo)
			}
		}
	}
	if found = slices.Compact(found); len(found) != 1 {
		return "", err
	}
	if hasVariant {
		found[0] += "@" + variant
	}
	terminal.Printf(cmd.ErrOrStderr(), "%s is %s.\n", name, found[0])
	return found[0], nil
}

// LoadedNames returns the ids of the instances.
func LoadedNames(ctx context.Context, c *client.Client) []string {
	models, _ := c.Models(ctx) // as above
	return InstanceIDs(models, "")
}

// JobNames returns the ids of the downloads.
func JobNames(ctx context.Context, c *client.Client) []string {
	list, _ := c.Jobs(ctx) // as above
	names := make([]string, len(list.Jobs))
	for i := range list.Jobs {
		names[i] = list.Jobs[i].ID
	}
	return names
}

// TokenNames returns the ids of the tokens.
func TokenNames(ctx context.Context, c *client.Client) []string {
	tokens, _ := c.Tokens(ctx) // as above
	names := make([]string, len(tokens))
	for i := range tokens {
		names[i] = tokens[i].ID
	}
	return names
}

// InstanceIDs returns the instances of the models with a name, with or without the publisher; an empty name means all.
func InstanceIDs(models resource.Models, name string) []string {
	var ids []string
	for _, m := range models.Models {
		if name != "" && !GoesBy(m.Key, name) && !HasAlias(m.Aliases, name) {
			continue
		}
		for _, in := range m.Instances {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// GoesBy reports whether a name is a model's key, with or without the publisher.
func GoesBy(key, name string) bool {
	_, bare, _ := strings.Cut(key, "/")
	return strings.EqualFold(name, key) || strings.EqualFold(name, bare)
}

// HasAlias reports whether a name matches one of the aliases, which may be patterns.
func HasAlias(aliases []string, name string) bool {
	return slices.ContainsFunc(aliases, func(alias string) bool {
		matches, err := path.Match(alias, name)
		return err == nil && matches
	})
}

// completionPatience bounds how long a server is asked for names while somebody waits for a shell to complete one.
const completionPatience = time.Second

// Completer completes an argument or a flag in a shell. It is silent about errors.
type Completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// CompleteWith completes an argument with names of the server, of which it takes so many; 0: any number.
func (c *Connection) CompleteWith(names func(context.Context, *client.Client) []string, most int) Completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		to, err := c.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer to.Close()
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		return BeginningWith(typed, names(ctx, to)), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOneOf completes a flag whose values are separated by commas.
func CompleteOneOf(values ...string) Completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1] // values that are complete
		names := BeginningWith(typed[len(before):], values)
		for i := range names {
			names[i] = before + names[i]
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// BeginningWith returns those of some names that begin with what was typed.
func BeginningWith(typed string, all []string) []string {
	var some []string
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			some = append(some, name)
		}
	}
	return some
}

// advicePatience bounds how long a server is asked for the names that there are, to find the one that was meant.
const advicePatience = 5 * time.Second

// advise changes the message of a refusal to the words of the command line: a name that the server doesn't know is compared with those that
// it has, and endpoints and fields become commands and flags. The message may be about one of the names, besides those on the command line.
func advise(cmd *cobra.Command, to *client.Client, refused *client.Error, names []string) {
	if refused.IsUnknownEndpoint() {
		refused.Message = `the server doesn't know what "` + cmd.CommandPath() + `" asks for: it is older than this command, ` +
			`and has to be started again with the new program ("lmcaddy status" shows its version)`
		if slices.ContainsFunc(cmd.Flags().Args(), IsNoName) {
			refused.Message = `the name has a path in it: "` + cmd.CommandPath() + ` --help" says what can be named`
		}
		return
	}
	if said := unknownName(cmd, to, refused, names); said != "" {
		refused.Message = said
		return
	}
	refused.Message = inCommands(cmd, refused.Message)
	if refused.Code == "missing_scope" {
		refused.Hint = `on the server's machine, "lmcaddy token edit ID --scopes …" gives it more`
	}
}

// IsNoName reports whether an argument can't be the name of anything: in a URL, it leads elsewhere.
func IsNoName(arg string) bool { return strings.Trim(arg, "./ ") == "" || strings.Contains(arg, "../") }

// unknownName returns the message about a name of the command line that the server doesn't know; empty if that isn't what is wrong.
func unknownName(cmd *cobra.Command, to *client.Client, refused *client.Error, names []string) string {
	var known func(context.Context, *client.Client) []string
	var what, next string
	switch {
	case refused.Code == "token_not_found":
		known, what, next = TokenNames, "token with the id", `"lmcaddy token ls" lists the tokens`
	case refused.Type == "job_not_found":
		known, what, next = JobNames, "download", `"lmcaddy get" lists them`
	case refused.Type != "model_not_found" && refused.Code != "model_not_found" || strings.Contains(refused.Message, "ambiguous") || refused.Code == "model_not_loaded":
		return ""
	case strings.HasPrefix(refused.Message, "No instance "):
		known, what, next = LoadedNames, "loaded model", `"lmcaddy ps" lists what is loaded`
	case strings.HasPrefix(refused.Message, "The model "):
		known, what, next = modelNames, "model", `"lmcaddy ls" lists the models, "lmcaddy get" downloads one`
	default:
		return ""
	}
	name := namedIn(cmd, refused.Message, names)
	if name == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), advicePatience)
	defer cancel()
	if meant := nearest.DidYouMean(name, known(ctx, to)); meant != "" {
		return fmt.Sprintf("there is no %s %q%s %s", what, name, meant, next)
	}
	said := inCommands(cmd, refused.Message)
	if strings.Contains(said, next) {
		return said
	}
	return strings.TrimRight(said, ". ") + ". " + next
}

// namedIn returns the argument, the value of a flag or the name that a message mentions.
func namedIn(cmd *cobra.Command, message string, names []string) string {
	given := slices.Concat(names, cmd.Flags().Args())
	cmd.Flags().Visit(func(f *pflag.Flag) { given = append(given, f.Value.String()) })
	for _, name := range given {
		if name != "" && (strings.Contains(message, `"`+name+`"`) || strings.Contains(message, strconv.Quote(name))) {
			return name
		}
	}
	return ""
}

// endpoints are the commands instead of the endpoints that messages of the server mention.
var endpoints = strings.NewReplacer(
	"GET /api/v1/models lists the loaded instances", `"lmcaddy ps" lists what is loaded`,
	"POST /api/v1/models/load", `"lmcaddy load"`, "POST /api/v1/models/unload", `"lmcaddy unload"`,
	"GET /api/v1/models/download", `"lmcaddy get"`, "GET /api/v1/models", `"lmcaddy ls"`,
)

var (
	cancelEndpoint = regexp.MustCompile(`POST /api/v1/models/download/([^/\s]+)/cancel`)
	hubsStatus     = regexp.MustCompile(`^\S+ answered [0-9]{3} [^:]*: `)
	noReasoning    = regexp.MustCompile(`^Reasoning setting '([^']*)' is not supported by model '([^']*)'\. Supported settings: (.*)$`)
	quotedField    = regexp.MustCompile("[\"`][a-z]+(?:(?:_[a-z]+)+[\"`]|[\"`] must )") // of one word, only as a sentence's subject
)

// inCommands returns a message of the server with commands instead of endpoints, and flags instead of fields.
func inCommands(cmd *cobra.Command, message string) string {
	message = hubsStatus.ReplaceAllString(message, "")
	if cmd.Flags().Lookup("reasoning") != nil {
		message = noReasoning.ReplaceAllString(message, "$2 doesn't have --reasoning $1; it has $3")
	}
	message = endpoints.Replace(cancelEndpoint.ReplaceAllString(message, `"lmcaddy get --cancel $1"`))
	return quotedField.ReplaceAllStringFunc(message, func(quoted string) string {
		field, rest, _ := strings.Cut(quoted[1:], quoted[:1])
		flag := strings.ReplaceAll(field, "_", "-")
		if cmd.Flags().Lookup(flag) == nil {
			return quoted
		}
		return "--" + flag + rest
	})
}
