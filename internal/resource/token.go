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
