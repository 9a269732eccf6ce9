package kit

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
)

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
