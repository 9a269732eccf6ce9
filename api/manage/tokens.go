package manage

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// DescribeToken returns what the native API says of a token, without its secret.
func DescribeToken(t *access.Token) resource.Token {
	d := resource.Token{
		ID: t.ID, Name: t.Name, Scopes: make([]string, len(t.Scopes)), Models: append([]string{}, t.Models...),
		Limits: resource.TokenLimits(t.Limits), Created: resource.At(t.Created), Expires: resource.At(t.Expires),
		LastUsed: resource.At(t.LastUsed),
	}
	for i, s := range t.Scopes {
		d.Scopes[i] = string(s)
	}
	return d
}

// listTokens is GET /api/v1/tokens.
func listTokens(c *endpoint.Call) error {
	tokens, err := c.Node.Access.Tokens.List(c.Request.Context())
	if err != nil {
		return err
	}
	list := []resource.Token{}
	for i := range tokens {
		list = append(list, DescribeToken(&tokens[i]))
	}
	return c.Answer(map[string]any{"tokens": list})
}

// createToken is POST /api/v1/tokens.
func createToken(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	t := access.Token{Scopes: slices.Clone(access.DefaultScopes)}
	if !body.Get("name").Exists() {
		return translate.Missing("name")
	}
	if err := editToken(&t, body); err != nil {
		return err
	}
	secret, t, err := c.Node.Access.Tokens.Create(c.Request.Context(), t)
	if err != nil {
		return asTokenError(err)
	}
	made := DescribeToken(&t)
	made.Secret = secret
	answer, err := json.Marshal(made) //nolint:gosec // this answer is the only one that has the secret
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	c.WriteJSON(http.StatusCreated, answer)
	return nil
}

// patchToken is PATCH /api/v1/tokens/{id}: fields that are absent stay as they are.
func patchToken(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	t, err := c.Node.Access.Tokens.Get(c.Request.Context(), c.Param)
	if err != nil {
		return noToken(err)
	}
	if err := editToken(&t, body); err != nil {
		return err
	}
	if t, err = c.Node.Access.Tokens.Update(c.Request.Context(), t); err != nil {
		return noToken(asTokenError(err))
	}
	return c.Answer(DescribeToken(&t))
}

// revokeToken is DELETE /api/v1/tokens/{id}.
func revokeToken(c *endpoint.Call) error {
	if err := c.Node.Access.Tokens.Revoke(c.Request.Context(), c.Param); err != nil {
		return noToken(err)
	}
	return c.Answer(map[string]any{"id": c.Param, "revoked": true})
}

func noToken(err error) error {
	if missing, ok := errors.AsType[*store.NotFound](err); ok {
		return translate.NewError(translate.KindResponseNotFound, "token_not_found", "",
			"There is no token with the id "+endpoint.Quoted(missing.ID)+".")
	}
	return err
}

func asTokenError(err error) error {
	if wrong, ok := errors.AsType[*access.TokenError](err); ok {
		return translate.Invalid("invalid_value", wrong.Param, strings.ToUpper(wrong.Message[:1])+wrong.Message[1:]+".")
	}
	return err
}

func editToken(t *access.Token, body *jsonbody.Body) error {
	if fields := body.Fields(); fields.Get("name") != nil {
		if t.Name = fields.Text("name"); fields.Err != nil {
			return fields.Err
		}
	}
	if bad := cmp.Or(editWords(&t.Scopes, body, "scopes"), editWords(&t.Models, body, "models")); bad != nil {
		return bad
	}
	if v := body.Get("expires_at"); v.Type == gjson.Null {
		if v.Exists() { // never
			t.Expires = time.Time{}
		}
	} else if at, err := time.Parse(time.RFC3339, v.Str); err == nil {
		t.Expires = at
	} else {
		return translate.BadValue("expires_at", `must be a time such as "2027-01-31T12:00:00Z", or null for never.`)
	}
	return editLimits(t, body.Get("limits"))
}

const maxWords = 1024

func editWords[T ~string](to *[]T, body *jsonbody.Body, name string) *translate.Error {
	v := body.Get(name)
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	all := jsonbody.AtMost(maxWords, v)
	if len(all) > maxWords {
		return translate.BadValue(name, "must hold at most %d strings.", maxWords)
	}
	words := make([]T, len(all))
	for i, w := range all {
		if words[i] = T(w.Str); !v.IsArray() || w.Type != gjson.String {
			return translate.Refused("invalid_type", name, "must be an array of strings.")
		}
	}
	*to = words
	return nil
}

// editLimits reads a token's limits. null, or 0, is no limit.
func editLimits(t *access.Token, v gjson.Result) error {
	switch {
	case !v.Exists():
		return nil
	case v.Type == gjson.Null:
		t.Limits = access.Limits{}
		return nil
	case !v.IsObject():
		return translate.Refused("invalid_type", "limits", "must be an object.")
	}
	for name, to := range map[string]*int{
		"limits.requests_per_minute": &t.Limits.RequestsPerMinute, "limits.tokens_per_day": &t.Limits.TokensPerDay,
		"limits.concurrent_requests": &t.Limits.Concurrent,
	} {
		switch n := v.Get(strings.TrimPrefix(name, "limits.")); {
		case !n.Exists():
		case n.Type != gjson.Number && n.Type != gjson.Null, n.Num < 0, n.Num > maxLoadNumber, n.Num != float64(int(n.Num)):
			return translate.BadValue(name, "must be a whole number, and not negative.")
		default:
			*to = int(n.Num)
		}
	}
	return nil
}
