package manage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

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
