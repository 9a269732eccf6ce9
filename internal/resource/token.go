package resource

import "time"

// Token is the right to use a server.
type Token struct {
	Secret   string      `json:"token,omitempty"` // when it is created, and never again
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Scopes   []string    `json:"scopes"`
	Models   []string    `json:"models"` // empty: all
	Limits   TokenLimits `json:"limits"`
	Created  *Time       `json:"created_at"`
	Expires  *Time       `json:"expires_at"`   // null: never
	LastUsed *Time       `json:"last_used_at"` // null: never
}

// TokenLimits bound what a token may be used for. A zero field is no bound.
type TokenLimits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerDay      int `json:"tokens_per_day,omitempty"`
	Concurrent        int `json:"concurrent_requests,omitempty"`
}

// Time is a moment as the native API has it: in UTC, to the millisecond.
type Time struct{ time.Time }

// At returns a moment, or nil for the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// MarshalJSON writes the time.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}
