package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

type (
	usageAnswer struct {
		From  string      `json:"from"`
		To    string      `json:"to"`
		Usage []usageItem `json:"usage"`
	}
	// usageItem is what one owner has used of one model on one day.
	usageItem struct {
		Day       string `json:"day"`   // in UTC
		Owner     string `json:"owner"` // a token's id, or a user of another authentication; empty: anybody
		Model     string `json:"model"`
		Requests  int64  `json:"requests"`
		TokensIn  int64  `json:"input_tokens"`
		TokensOut int64  `json:"output_tokens"`
	}
)

// usageDays is the number of days if the request doesn't say.
const usageDays = 30

// usage is GET /api/v1/usage?from=2026-01-01&to=2026-01-31: everybody's for an administrator, otherwise the identity's own.
func (c *call) usage() error {
	to := time.Now().UTC()
	from := to.AddDate(0, 0, 1-usageDays)
	query := c.r.URL.Query()
	for name, day := range map[string]*time.Time{"from": &from, "to": &to} {
		if given := query.Get(name); given != "" {
			t, err := time.Parse(time.DateOnly, given)
			if err != nil {
				return translate.Invalid("invalid_value", name, `"`+name+`" must be a day such as 2026-01-31.`)
			}
			*day = t
		}
	}
	var owner *string
	if c.who == nil || !c.who.May(node.ScopeAdmin) {
		owner = new(c.owner())
	}
	used, err := c.node.Usage(c.r.Context(), owner, from, to)
	if err != nil {
		return err
	}
	answer := usageAnswer{From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), Usage: []usageItem{}}
	for key, n := range used {
		day := time.Unix(int64(key.Day)*24*60*60, 0).UTC().Format(time.DateOnly)
		answer.Usage = append(answer.Usage, usageItem{day, key.Owner, key.Model, n.Requests, n.TokensIn, n.TokensOut})
	}
	slices.SortFunc(answer.Usage, func(a, b usageItem) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
	})
	return c.answer(answer)
}
