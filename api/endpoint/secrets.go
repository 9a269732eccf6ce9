package endpoint

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// mask is what stands for a secret.
const mask = "***"

// mostSecrets is how many secrets of a body are masked, since each takes a pass over the body. One with more is masked as a whole.
const mostSecrets = 64

// withoutSecrets is the body of a request without the secrets of the MCP servers that it names: their headers and tokens, and of their URLs all
// but the host. It may be a request that is refused, with secrets in other places, and under misspelled names, than they belong.
func withoutSecrets(body []byte) []byte {
	parsed, m := gjson.ParseBytes(body), masker{body: body}
	for _, list := range []string{"tools", "integrations", "mcp_servers"} {
		m.search(parsed.Get(list))
	}
	if m.masked > mostSecrets {
		return []byte(`"` + mask + `"`)
	}
	return m.body
}

// masker masks secrets in a body.
type masker struct {
	body   []byte
	masked int
}

// schemas are the fields of tools that describe arguments, whose names may be those of secrets.
var schemas = []string{"function", "parameters", "input_schema"}

// secretWords are parts of the names of secrets.
var secretWords = []string{"header", "auth", "token", "secret", "password", "key", "cookie"}

// search masks the secrets in the members of an object, or of what is in an array.
func (m *masker) search(value gjson.Result) {
	value.ForEach(func(name, member gjson.Result) bool {
		key := strings.ToLower(name.Str)
		switch {
		case value.IsObject() && slices.Contains(schemas, key):
		case value.IsObject() && slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) }):
			m.maskAll(member)
		case strings.Contains(key, "url") && member.Type == gjson.String:
			m.hide(member, hostOf(member.Str))
		case member.IsObject() || member.IsArray():
			m.search(member)
		}
		return m.masked <= mostSecrets
	})
}

// maskAll masks all texts in a value.
func (m *masker) maskAll(value gjson.Result) {
	switch {
	case value.Type == gjson.String:
		m.hide(value, mask)
	case value.IsObject() || value.IsArray():
		value.ForEach(func(_, member gjson.Result) bool {
			m.maskAll(member)
			return m.masked <= mostSecrets
		})
	}
}

// hide puts something in the place of a string, wherever it is.
func (m *masker) hide(secret gjson.Result, shown string) {
	if m.masked++; secret.Raw != `""` && m.masked <= mostSecrets {
		m.body = bytes.ReplaceAll(m.body, []byte(secret.Raw), jsonbody.AppendString(nil, shown))
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return mask
	}
	return u.Scheme + "://" + u.Host + "/" + mask
}
