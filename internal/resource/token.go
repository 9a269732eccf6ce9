package resource

import "time"

// Token is an API token.
type Token struct {
	Secret   string      `json:"token,omitempty"` // only in the response that creates it
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Scopes   []string    `json:"scopes"`
	Models   []string    `json:"models"` // empty: all
	Limits   TokenLimits `json:"limits"`
	Created  *Time       `json:"created_at"`
	Expires  *Time       `json:"expires_at"`   // null: never
	LastUsed *Time       `json:"last_used_at"` // null: never
}

// TokenLimits bound the use of a token. A zero field means unlimited.
type TokenLimits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerDay      int `json:"tokens_per_day,omitempty"`
	Concurrent        int `json:"concurrent_requests,omitempty"`
}

// Time is a time in the format of the native API: UTC, with milliseconds.
type Time struct{ time.Time }

// At converts a time. It returns nil for the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// TimeFormat is the JSON of a time in UTC.
const TimeFormat = `"2006-01-02T15:04:05.000Z"`

// MarshalJSON implements [encoding/json.Marshaler].
func (t Time) MarshalJSON() ([]byte, error) { return []byte(t.UTC().Format(TimeFormat)), nil }

// Usage is the response to GET /api/v1/usage with the parameter by.
type Usage struct {
	From  string     `json:"from"` // days in UTC, both included
	To    string     `json:"to"`
	By    string     `json:"by"`
	Usage []UsageRow `json:"usage"`
	Total UsageCount `json:"total"`
}

// HourlyUsage is the response to GET /api/v1/usage with by=hour.
type HourlyUsage struct {
	From  *Time      `json:"from"` // the first hour
	To    *Time      `json:"to"`   // the last one, which is not over
	By    string     `json:"by"`
	Usage []UsedHour `json:"usage"` // sorted by hour and model
	Total UsageCount `json:"total"`
}

// UsedHour is the usage of a model in an hour.
type UsedHour struct {
	Hour  time.Time `json:"hour"` // its beginning
	Model string    `json:"model"`
	UsageCount
}

// UsageCount is an amount of usage.
type UsageCount struct {
	Requests  int64 `json:"requests"`
	TokensIn  int64 `json:"input_tokens"`
	TokensOut int64 `json:"output_tokens"`
}

// UsageRow is the usage of one day, one model or one token: one of the first three fields is set.
type UsageRow struct {
	Day   string  `json:"day,omitempty"`
	Model string  `json:"model,omitempty"`
	Owner *string `json:"owner,omitempty"` // a token's id, or a user of another authentication; empty: anybody

	Name        string `json:"name,omitempty"`           // of the token; absent if it was revoked
	TokensToday *int64 `json:"tokens_today,omitempty"`   // input and output together
	PerDay      int    `json:"tokens_per_day,omitempty"` // the token's limit; absent: none
	UsageCount
}
