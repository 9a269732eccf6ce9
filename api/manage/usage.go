package manage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/store"
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

const usageDays = 30

// usage is GET /api/v1/usage?from=2026-01-01&to=2026-01-31, or ?since=7d: everybody's for an administrator, otherwise the
// identity's own. With by=day, by=model or by=token, it is summed up.
func usage(c *endpoint.Call) error {
	by := c.Request.URL.Query().Get("by")
	if by == byHour {
		return hourlyUsage(c)
	}
	from, to, err := usagePeriod(parametersOf(c))
	if err != nil {
		return err
	}
	if _, ok := usageGroups[by]; !ok && by != "" {
		return translate.BadValue("by", "must be hour, day, model or token.")
	}
	used, err := usedBetween(c, from, to)
	if err != nil {
		return err
	}
	if by != "" {
		return usageBy(c, by, used, from, to)
	}
	answer := usageAnswer{From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), Usage: []usageItem{}}
	for key, n := range used {
		answer.Usage = append(answer.Usage, usageItem{dayOf(key), key.Owner, key.Model, n.Requests, n.TokensIn, n.TokensOut})
	}
	slices.SortFunc(answer.Usage, func(a, b usageItem) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
	})
	return c.Answer(answer)
}

func usedBetween(c *endpoint.Call, from, to time.Time) (map[store.UsageKey]store.UsageCount, error) {
	return c.Node.Record.Usage.Daily(c.Request.Context(), usageOwner(c), from, to)
}

// usageOwner is the owner whose usage the request's identity may see; nil: everybody's.
func usageOwner(c *endpoint.Call) *string {
	if c.IsAdmin() {
		return nil
	}
	return new(c.Owner())
}

func dayOf(key store.UsageKey) string {
	return time.Unix(int64(key.Day)*24*60*60, 0).UTC().Format(time.DateOnly)
}

// usagePeriod reads the days of which the usage is requested.
func usagePeriod(query *parameters) (from, to time.Time, _ error) {
	to = time.Now().UTC()
	from = to.AddDate(0, 0, 1-query.since(usageDays, map[string]int{"d": 10_000}))
	if query.Get("since") != "" && (query.Get("from") != "" || query.Get("to") != "") {
		query.wrong("since", `absent where "from" or "to" is given`)
	}
	for name, day := range map[string]*time.Time{"from": &from, "to": &to} {
		if given := query.Get(name); given != "" {
			t, err := time.Parse(time.DateOnly, given)
			if err != nil {
				query.wrong(name, "a day such as 2026-01-31")
			}
			*day = t
		}
	}
	if query.err == nil && from.Format(time.DateOnly) > to.Format(time.DateOnly) {
		query.wrong("from", `no later than "to", which is today, in UTC, if it isn't given`)
	}
	return from, to, query.err
}

// since reads a number of days or hours, of which the current one counts. most has the most of each unit.
func (p *parameters) since(absent int, most map[string]int) int {
	given := p.Get("since")
	if given == "" {
		return absent
	}
	unit := given[len(given)-1:]
	n, err := strconv.Atoi(strings.TrimSuffix(given, unit))
	if err != nil || n < 1 || n > most[unit] {
		p.wrong("since", "such as 7d: a number of days, or with by=hour of at most a week's hours or days. The current one counts")
	}
	return n
}
