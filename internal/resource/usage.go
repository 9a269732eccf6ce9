package resource

import "time"

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
