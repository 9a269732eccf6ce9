package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate"
)

// byHour is the value of by for the usage of each hour and model.
const byHour = "hour"

const (
	usageHours     = 24     // if the request doesn't say
	mostUsageHours = 7 * 24 // of one request
)

// hourlyUsage answers with the usage of each hour and model in the last hours: everybody's together for an administrator, otherwise the
// identity's own.
func hourlyUsage(c *endpoint.Call) error {
	query := c.Request.URL.Query()
	for _, name := range []string{"from", "to"} {
		if query.Get(name) != "" {
			return translate.Invalid("invalid_value", name, `With by=hour, give "since" in place of "from" and "to".`)
		}
	}
	hours, bad := hoursOf(query.Get("since"))
	if bad != nil {
		return bad
	}
	to := time.Now().UTC().Truncate(time.Hour)
	from := to.Add(time.Duration(1-hours) * time.Hour)
	used, err := c.Node.HourlyUsage(c.Request.Context(), usageOwner(c), from, to)
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

// hoursOf reads a number of hours, such as 24h or 7d. The current one counts.
func hoursOf(since string) (int, *translate.Error) {
	if since == "" {
		return usageHours, nil
	}
	unit := 1
	number, ok := strings.CutSuffix(since, "h")
	if !ok {
		number, ok = strings.CutSuffix(since, "d")
		unit = 24
	}
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || n > mostUsageHours/unit {
		return 0, translate.Invalid("invalid_value", "since", fmt.Sprintf(`With by=hour, "since" must be a number of hours up to %dh, or of days up to %dd: the current hour counts as one.`, mostUsageHours, mostUsageHours/24))
	}
	return n * unit, nil
}
