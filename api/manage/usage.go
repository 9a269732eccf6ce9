package manage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
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

// usageGroups are the ways to sum up usage: what a row is for.
var usageGroups = map[string]func(store.UsageKey) resource.UsageRow{
	"day":   func(k store.UsageKey) resource.UsageRow { return resource.UsageRow{Day: dayOf(k)} },
	"model": func(k store.UsageKey) resource.UsageRow { return resource.UsageRow{Model: k.Model} },
	"token": func(k store.UsageKey) resource.UsageRow { return resource.UsageRow{Owner: &k.Owner} },
}

// usageBy sums usage up by day, model or token. Days are in order; of the others, those with the most tokens come first.
func usageBy(c *endpoint.Call, by string, used map[store.UsageKey]store.UsageCount, from, to time.Time) error {
	answer := resource.Usage{From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), By: by, Usage: []resource.UsageRow{}}
	sums := map[string]*resource.UsageRow{}
	for key, n := range used {
		row := usageGroups[by](key)
		name := nameOf(row)
		if sums[name] == nil {
			sums[name] = &row
		}
		addUsage(&sums[name].UsageCount, n)
		addUsage(&answer.Total, n)
	}
	if by == "token" {
		if err := nameTokens(c, sums); err != nil {
			return err
		}
	}
	for _, row := range sums {
		answer.Usage = append(answer.Usage, *row)
	}
	slices.SortFunc(answer.Usage, func(a, b resource.UsageRow) int {
		byTokens := 0
		if by != "day" {
			byTokens = cmp.Compare(b.TokensIn+b.TokensOut, a.TokensIn+a.TokensOut)
		}
		return cmp.Or(byTokens, cmp.Compare(nameOf(a), nameOf(b)))
	})
	return c.Answer(answer)
}

func nameOf(row resource.UsageRow) string {
	if row.Owner != nil {
		return *row.Owner
	}
	return row.Day + row.Model
}

func addUsage(to *resource.UsageCount, n store.UsageCount) {
	to.Requests, to.TokensIn, to.TokensOut = to.Requests+n.Requests, to.TokensIn+n.TokensIn, to.TokensOut+n.TokensOut
}

// nameTokens adds the names and limits of tokens, and what they have used today. A token without the scope admin sees its own.
func nameTokens(c *endpoint.Call, rows map[string]*resource.UsageRow) error {
	tokens := []access.Token{}
	switch {
	case c.IsAdmin():
		var err error
		if tokens, err = c.Node.Access.Tokens.List(c.Request.Context()); err != nil {
			return err
		}
	case c.Identity != nil:
		tokens = append(tokens, access.Token{ID: c.Identity.Owner, Name: c.Identity.Name, Limits: c.Identity.Limits})
	}
	today, err := usedBetween(c, time.Now(), time.Now())
	if err != nil {
		return err
	}
	for key, n := range today {
		if row := rows[key.Owner]; row != nil {
			if row.TokensToday == nil {
				row.TokensToday = new(int64)
			}
			*row.TokensToday += n.TokensIn + n.TokensOut
		}
	}
	for _, t := range tokens {
		if row := rows[t.ID]; row != nil {
			row.Name, row.PerDay = t.Name, t.Limits.TokensPerDay
		}
	}
	return nil
}

const byHour = "hour"

// hourlyUsage is the usage of each of the last hours and model: everybody's for an administrator, otherwise the identity's own.
func hourlyUsage(c *endpoint.Call) error {
	query := parametersOf(c)
	for _, name := range []string{"from", "to"} {
		if query.Get(name) != "" {
			return translate.Invalid("invalid_value", name, `With by=hour, give "since" in place of "from" and "to".`)
		}
	}
	hours := query.since(24, map[string]int{"h": 7 * 24, "d": 7})
	if query.err != nil {
		return query.err
	}
	if strings.HasSuffix(query.Get("since"), "d") {
		hours *= 24
	}
	to := time.Now().UTC().Truncate(time.Hour)
	from := to.Add(time.Duration(1-hours) * time.Hour)
	used, err := c.Node.Record.Usage.Hourly(c.Request.Context(), usageOwner(c), from, to)
	if err != nil {
		return err
	}
	answer := resource.HourlyUsage{From: resource.At(from), To: resource.At(to), By: byHour, Usage: []resource.UsedHour{}}
	for key, n := range used {
		row := resource.UsedHour{Hour: time.Unix(int64(key.Hour)*60*60, 0).UTC(), Model: key.Model}
		addUsage(&row.UsageCount, n)
		addUsage(&answer.Total, n)
		answer.Usage = append(answer.Usage, row)
	}
	slices.SortFunc(answer.Usage, func(a, b resource.UsedHour) int { return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Model, b.Model)) })
	return c.Answer(answer)
}
